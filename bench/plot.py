"""The scoreboard as a picture: each program a line of dots, how many times the machine's own least time each side
takes. Matplotlib is asked for only when a plot is drawn."""

import io

COLOURS = {"hlojit": "#c0392b", "XLA:CPU": "#2c3e50", "IREE": "#2980b9", "ONNX Runtime": "#27ae60",
           "oneDNN": "#8e44ad", "NumPy": "#e67e22"}
OVER = 200.0  # further right is drawn at the edge


def svg(rows):
    """SVG text of the rows that have figures, in their order."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams.update({"svg.hashsalt": "hlojit", "svg.fonttype": "none"})  # the same text for the same rows
    rows = [row for row in rows if row.ours and row.roof_us]
    figure, axes = plt.subplots(figsize=(9, 0.16 * len(rows) + 1.2))
    for name, colour in COLOURS.items():
        points = [(min(f.us() / row.roof_us, OVER), k) for k, row in enumerate(rows)
                  for f in [row.ours if name == "hlojit" else row.figures.get(name)] if f]
        if points:
            axes.scatter(*zip(*points), s=18 if name == "hlojit" else 10, color=colour, label=name,
                         marker="D" if name == "hlojit" else "o", zorder=3 if name == "hlojit" else 2)
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=6)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xlabel("time over the machine's measured roof")
    axes.legend(loc="upper right", fontsize=7)
    figure.tight_layout()
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata={"Date": None})
    plt.close(figure)
    return target.getvalue()
