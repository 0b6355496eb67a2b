"""ONNX Runtime: a graph of ONNX's own operators for the programs that models are made of.

Single convolutions, products and the pools are built from the program's text; the others are written down here, each
a function of (graph, sizes, arguments' names) that returns the results' names. Images are N, C, spatial in ONNX:
programs with features last get their arrays turned round before, and their answers after, outside of the time.
"""

import math
import time

import numpy as np

from peers.base import Missing, Ready
from peers.single import single

GRAPHS = {}
OPSET = 20


class Graph:
    """The nodes and constants of a model under construction; values are names."""

    def __init__(self, helper):
        self.helper, self.nodes, self.constants = helper, [], []

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(self.helper.from_array(np.asarray(value, dtype), name))
        return name

    def __getattr__(self, op):
        """graph.Softmax(x, axis=-1) adds a node and gives its result; `outputs` how many, if more than one."""
        def add(*inputs, outputs=1, **attributes):
            names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
            self.nodes.append(self.helper.make_node(op, list(inputs), names, **attributes))
            return names[0] if outputs == 1 else names
        return add


def runs(*names, turned=(), back=()):
    """Registers a graph for these programs. Arguments `turned` and results `back` have features last in HLO."""

    def register(function):
        GRAPHS.update({name: (function, turned, back) for name in names})
        return function

    return register


def simple(names, function, **options):
    runs(*names.split(), **options)(lambda g, sizes, *arguments: function(g, *arguments))


simple("gelu gelu_erfc", lambda g, x: g.Gelu(x))
simple("gelu_tanh", lambda g, x: g.Gelu(x, approximate="tanh"))
simple("axpy", lambda g, a, x, y: g.Add(g.Mul(a, x), y))
simple("softmax", lambda g, x: g.Softmax(x, axis=-1))
simple("softmax_columns", lambda g, x: g.Softmax(x, axis=0))
simple("layernorm", lambda g, x, gain, bias: g.LayerNormalization(x, gain, bias, axis=-1, epsilon=1e-5))
simple("logsumexp", lambda g, x: g.ReduceLogSumExp(x, g.constant([1], np.int64), keepdims=0))
simple("sum_rows", lambda g, x: g.ReduceSum(x, g.constant([1], np.int64), keepdims=0))
simple("sum_columns", lambda g, x: g.ReduceSum(x, g.constant([0], np.int64), keepdims=0))
simple("argmax", lambda g, x: [g.Cast(g.ArgMax(x, axis=1, keepdims=0), to=6),
                               g.Cast(g.ArgMin(x, axis=0, keepdims=0), to=6)])
simple("cumsum", lambda g, x: g.CumSum(x, g.constant(1, np.int64)))
simple("transpose_2d transpose_s8", lambda g, x: g.Transpose(x, perm=[1, 0]))
simple("transpose_021", lambda g, x: g.Transpose(x, perm=[0, 2, 1]))
simple("transpose_102", lambda g, x: g.Transpose(x, perm=[1, 0, 2]))
simple("transpose_210", lambda g, x: g.Transpose(x, perm=[2, 1, 0]))
simple("nhwc_to_nchw", lambda g, x: g.Transpose(x, perm=[0, 3, 1, 2]))
simple("concat_cols", lambda g, *xs: g.Concat(*xs, axis=1))
simple("dense_gelu", lambda g, x, w, b: g.Gelu(g.Add(g.MatMul(x, w), b), approximate="tanh"))
simple("pool_max", lambda g, x: g.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
       turned=[0], back=[0])
simple("pool_average", lambda g, x: g.AveragePool(x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1],
                                                  count_include_pad=1), turned=[0], back=[0])


@runs("embedding")
def embedding(g, sizes, table, ids):
    return g.Mul(g.Gather(table, ids, axis=0), g.constant(math.sqrt(sizes["dim"])))


@runs("top_k")
def top_k(g, sizes, x):
    values, indices = g.TopK(x, g.constant([sizes["k"]], np.int64), outputs=2, axis=1)
    return [values, g.Cast(indices, to=6)]


def convolve(g, x, kernel, **options):
    """A convolution that keeps the size; the kernel comes as HLO has it, spatial sizes first."""
    return g.Conv(x, g.Transpose(kernel, perm=[3, 2, 0, 1]), auto_pad="SAME_UPPER", **options)


def column(g, vector):
    return g.Reshape(vector, g.constant([1, -1, 1, 1], np.int64))


@runs("conv_bias_relu", turned=[0], back=[0])
def conv_bias_relu(g, sizes, x, w, b):
    return g.Relu(g.Conv(x, g.Transpose(w, perm=[3, 2, 0, 1]), b, auto_pad="SAME_UPPER"))


@runs("resnet_block", turned=[0], back=[0])
def resnet_block(g, sizes, x, k1, g1, b1, k2, g2, b2):
    h = g.Relu(g.Add(g.Mul(convolve(g, x, k1), column(g, g1)), column(g, b1)))
    return g.Relu(g.Add(x, g.Add(g.Mul(convolve(g, h, k2), column(g, g2)), column(g, b2))))


@runs("cnn_forward", turned=[0])
def cnn_forward(g, sizes, x, k1, k2, w, b):
    for kernel in (k1, k2):
        x = g.MaxPool(g.Relu(convolve(g, x, kernel)), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    flat = g.Reshape(g.Transpose(x, perm=[0, 2, 3, 1]), g.constant([sizes["batch"], -1], np.int64))
    return g.Add(g.MatMul(flat, w), b)


def attend(g, q, k, v, dim, hidden=None):
    """softmax(q k^T / sqrt(dim) + hidden) v over the last two dimensions."""
    scores = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), g.constant(1 / math.sqrt(dim)))
    return g.MatMul(g.Softmax(g.Add(scores, hidden) if hidden else scores, axis=-1), v)


def causal(g, seq):
    return g.constant(np.triu(np.full((seq, seq), -1e9), 1))


@runs("attention_full")
def attention_full(g, sizes, q, k, v):
    return attend(g, q, k, v, sizes["dim"])


@runs("attention")
def attention(g, sizes, q, k, v):
    return attend(g, q, k, v, sizes["dim"], causal(g, sizes["seq"]))


@runs("transformer_block")
def transformer_block(g, sizes, x, g1, b1, wqkv, wo, g2, b2, w1, c1, w2, c2):
    batch, seq, heads = sizes["batch"], sizes["seq"], sizes["heads"]
    head = sizes["dim"] // heads
    apart, together = (g.constant(shape, np.int64) for shape in ([batch, seq, heads, head], [batch, seq, heads * head]))
    h = g.LayerNormalization(x, g1, b1, axis=-1, epsilon=1e-5)
    q, k, v = (g.Transpose(g.Reshape(part, apart), perm=[0, 2, 1, 3])
               for part in g.Split(g.MatMul(h, wqkv), outputs=3, axis=-1, num_outputs=3))
    a = g.Transpose(attend(g, q, k, v, head, causal(g, seq)), perm=[0, 2, 1, 3])
    x = g.Add(x, g.MatMul(g.Reshape(a, together), wo))
    h = g.Gelu(g.Add(g.MatMul(g.LayerNormalization(x, g2, b2, axis=-1, epsilon=1e-5), w1), c1), approximate="tanh")
    return g.Add(g.Add(x, g.MatMul(h, w2)), c2)


@runs("lstm")
def lstm(g, sizes, xs, wx, wh, b):
    # Our gates stand in the order i, f, o, c, with one added to f; ONNX wants i, o, f, c, a bias for each product.
    def gates(weights, axis):
        i, f, o, c = g.Split(weights, outputs=4, axis=axis, num_outputs=4)
        return g.Concat(i, o, f, c, axis=axis)
    hidden = sizes["hidden"]
    one = g.constant(np.repeat([0, 1, 0, 0], hidden))
    bias = g.Concat(gates(g.Add(b, one), 0), g.constant(np.zeros(4 * hidden)), axis=0)
    first = g.constant([0], np.int64)
    weights = [g.Unsqueeze(g.Transpose(gates(w, 1), perm=[1, 0]), first) for w in (wx, wh)]
    ys, h, c = g.LSTM(xs, *weights, g.Unsqueeze(bias, first), outputs=3, hidden_size=hidden)
    return [g.Squeeze(ys, g.constant([1], np.int64)), g.Squeeze(h, first), g.Squeeze(c, first)]


def of_single(g, one, left, right):
    if one.kind == "dot":
        return g.MatMulInteger(left, right) if one.dtype == "s8" else g.MatMul(left, right)
    return g.Conv(left, right, strides=one.strides, dilations=one.dilations, pads=[*one.low, *one.high],
                  group=one.groups)


class Peer:
    name = "ONNX Runtime"

    def __init__(self, threads, isa):
        if isa != "native":
            raise Missing("its instruction set cannot be limited")
        try:
            import onnx
            import onnxruntime
        except ImportError as error:
            raise Missing(f"not installed ({error.name})") from None
        self.onnx, self.runtime = onnx, onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads, self.options.inter_op_num_threads = threads, 1
        self.options.log_severity_level = 4

    def version(self):
        return f"ONNX Runtime {self.runtime.__version__}"

    def _session(self, build, arrays):
        """A session of the graph that build(graph, names) gives, or None if the runtime refuses it."""
        helper = self.onnx.helper
        helper.from_array = self.onnx.numpy_helper.from_array
        graph = Graph(helper)
        names = [f"in_{k}" for k in range(len(arrays))]
        results = build(graph, names)
        results = results if isinstance(results, list) else [results]
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                  for name, a in zip(names, arrays)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        model = helper.make_model(helper.make_graph(graph.nodes, "program", inputs, outputs, graph.constants),
                                  opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        try:
            model = self.onnx.shape_inference.infer_shapes(model)
            start = time.perf_counter()
            session = self.runtime.InferenceSession(model.SerializeToString(), self.options,
                                                    providers=["CPUExecutionProvider"])
        except Exception:  # noqa: BLE001 - types without a kernel are refused by several kinds of error
            return None, None
        return session, (time.perf_counter() - start) * 1e3

    def prepare(self, case):
        one = single(case)
        if one is not None:
            arrays, build = [one.left, one.right], lambda g, names: of_single(g, one, *names)
            back = lambda results: [one.answer(results[0])]
        elif case.program.name in GRAPHS:
            function, turned, features_last = GRAPHS[case.program.name]
            arrays = [np.ascontiguousarray(a.transpose(0, 3, 1, 2)) if k in turned else a
                      for k, a in enumerate(case.arrays)]
            build = lambda g, names: function(g, case.sizes, *names)
            back = lambda results: [r.transpose(0, 2, 3, 1) if k in features_last else r
                                    for k, r in enumerate(results)]
        else:
            return None
        if any(str(a.dtype) == "bfloat16" for a in arrays):
            return None
        session, compile_ms = self._session(build, arrays)
        if session is None:
            return None
        binding = session.io_binding()
        for name, array in zip((i.name for i in session.get_inputs()), arrays):
            binding.bind_ortvalue_input(name, self.runtime.OrtValue.ortvalue_from_numpy(array))
        for output in session.get_outputs():
            binding.bind_output(output.name)

        def results():
            session.run_with_iobinding(binding)
            return back(binding.copy_outputs_to_cpu())

        return Ready(lambda: session.run_with_iobinding(binding), results, compile_ms)
