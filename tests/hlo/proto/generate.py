#!/usr/bin/env python3
"""Writes the golden protos of this folder: NAME.pb beside every NAME.hlo, by XLA's own serialiser.

usage: generate.py [FILE.hlo...]     needs jaxlib; without files, all of this folder are written anew

The text is written anew, too, as XLA prints the very module that was serialised, constants in full: so
names and order agree, and the importer's result can be compared with the parser's line by line. A
file given from elsewhere is added to the folder.
"""

import pathlib
import sys

import jaxlib._hlo as hlo

FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    files = [pathlib.Path(f) for f in sys.argv[1:]] or sorted(FOLDER.glob("*.hlo"))
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    for file in files:
        module = hlo.hlo_module_from_text(file.read_text())
        (FOLDER / f"{file.stem}.pb").write_bytes(module.as_serialized_hlo_module_proto())
        text = module.to_string(options).rstrip() + "\n"
        (FOLDER / f"{file.stem}.hlo").write_text(text)


if __name__ == "__main__":
    main()
