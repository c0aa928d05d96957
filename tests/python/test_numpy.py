"""fusec without torch: programs, their texts, and runs on numpy arrays. Run by tests/python.sh in an environment that
has the wheel and numpy alone."""
import importlib
import json
import resource
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import fusec

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = "graph rows[M, N](x : f32[M, N], s : f32 = 2) -> (y : f32[M, N], t : f32[N]) { y = x * s - mean[N](x)  t = sum[M](x) }"


def resident():
    """KiB of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def random(*shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


class Programs(unittest.TestCase):
    def test_declarations(self):
        program = fusec.Program(ROWS)
        self.assertEqual(program.graphs, ("rows",))
        self.assertEqual(repr(program), "<fusec.Program <memory>: rows>")
        self.assertIn("examples/rmsnorm.fuse: rmsnorm>", repr(fusec.Program.open(ROOT / "examples/rmsnorm.fuse")))
        graph = program.graph()
        self.assertEqual([axis.name for axis in graph.axes], ["M", "N"])
        self.assertIsNone(graph.axes[0].size)
        self.assertEqual([(t.name, t.dtype, t.axes) for t in graph.outputs], [("y", "f32", (0, 1)), ("t", "f32", (1,))])
        self.assertEqual(graph.scalars[0].default, 2.0)

    def test_files_import_each_other(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "double.fuse").write_text("fn double(x) = x + x\n")
            Path(folder, "main.fuse").write_text('import "double.fuse"\ngraph g[N](x : f32[N]) -> (y : f32[N]) { y = double(x) }\n')
            program = fusec.Program.open(Path(folder, "main.fuse"))
            np.testing.assert_array_equal(program(random(5)), 2 * random(5))
        with self.assertRaisesRegex(fusec.Error, "double.fuse"):
            fusec.Program(program.text)

    def test_texts(self):
        program = fusec.Program.open(ROOT / "examples/layernorm.fuse")
        self.assertIn("__global__", program.cuda(N=1024, arch="sm_80"))
        self.assertIn("axes: rows M; columns N", program.explain(N=1024))
        self.assertEqual(json.loads(program.explain(N=1024, json=True))["axes"]["columns"], ["N"])
        self.assertNotIn("rstd =", program.cuda(N=1024, outputs=["mean"]))

    def test_other_dtypes(self):
        program = fusec.Program.open(ROOT / "examples/layernorm.fuse").with_dtypes({"bf16": "f16", "gamma": "f32"})
        self.assertEqual([t.dtype for t in program.graph().inputs], ["f16", "f32", "f16"])

    def test_several_graphs(self):
        program = fusec.Program("graph a[N](x : f32[N]) -> (y : f32[N]) { y = x }\n"
                                "graph b[N](x : f32[N]) -> (y : f32[N]) { y = -x }\n")
        np.testing.assert_array_equal(program(random(3), graph="b"), -random(3))
        with self.assertRaisesRegex(fusec.Error, "graphs a, b"):
            program(random(3))

    def test_shipped_graphs_are_programs(self):
        folder = Path(fusec.__file__).parent / "graphs"
        for path in sorted(folder.glob("*.fuse")):
            self.assertEqual(fusec.graph_path(path.stem), str(path))
            self.assertTrue(fusec.Program.open(path).graphs)
            self.assertEqual(fusec.Program.open(path).warnings, "")


class Runs(unittest.TestCase):
    def test_layer_norm(self):
        program = fusec.Program.open(ROOT / "examples/layernorm.fuse").with_dtypes({"bf16": "f32"})
        x, gamma, beta = random(4, 64), random(64), random(64)
        y, mean, rstd = program(x, gamma, beta=beta, eps=1e-6)
        exact = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * gamma + beta
        np.testing.assert_allclose(y, exact, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(mean, x.mean(1), rtol=1e-5, atol=1e-6)

    def test_bf16_is_rounded(self):
        program = fusec.Program("graph g[N](x : bf16[N]) -> (y : bf16[N]) { y = x }")
        x = np.array([1, 1 + 2 ** -9, 1 + 3 * 2 ** -8, np.nan, np.inf], dtype=np.float32)
        np.testing.assert_array_equal(program(x), np.array([1, 1, 1 + 2 ** -6, np.nan, np.inf], dtype=np.float32))

    def test_leading_axes_are_rows(self):
        program = fusec.Program(ROWS)
        x = random(2, 3, 8)
        y, t = program(x)
        self.assertEqual(y.shape, x.shape)
        np.testing.assert_array_equal(y.reshape(6, 8), program(x.reshape(6, 8))[0])
        np.testing.assert_allclose(t, x.sum((0, 1)), rtol=1e-5)

    def test_views(self):
        program, x = fusec.Program(ROWS), random(6, 32)
        for view in (x[::2], x[::-1], x[:, 3:19], x.T, x[:, ::2], np.broadcast_to(x[0], (4, 32))):
            np.testing.assert_array_equal(program(view)[0], program(view.copy())[0])

    def test_dtypes(self):
        for name, dtype in {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32,
                            "i8": np.int8, "u8": np.uint8, "bool": np.bool_, "f8e4m3": np.uint8}.items():
            program = fusec.Program(f"graph g[N](x : {name}[N]) -> (y : {name}[N]) {{ y = x }}")
            x = np.array([0, 1, 1, 0]).astype(dtype)
            y = program(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)

    def test_one_number_and_no_rows(self):
        total = fusec.Program("graph g[N](x : f32[N]) -> (t : f32[]) { t = sum[N](x) }")
        self.assertEqual(total(np.ones(7, np.float32)).shape, ())
        self.assertEqual(fusec.Program(ROWS)(random(0, 8))[0].shape, (0, 8))

    def test_outputs_wanted(self):
        np.testing.assert_allclose(fusec.Program(ROWS)(random(3, 4), outputs=["t"]), random(3, 4).sum(0), rtol=1e-6)

    def test_threads(self):
        program, x, found = fusec.Program(ROWS), random(16, 64), []
        threads = [threading.Thread(target=lambda: found.append(program(x)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 8)
        for y in found:
            np.testing.assert_array_equal(y, found[0])


class Errors(unittest.TestCase):
    def refused(self, message, call):
        with self.assertRaisesRegex(fusec.Error, message) as caught:
            call()
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, RuntimeError)

    def test_packages_that_are_missing_are_told(self):
        program = fusec.Program(ROWS)
        with mock.patch.dict(sys.modules, {"numpy": None}):
            sys.modules.pop("fusec._numpy", None)
            self.refused("needs numpy: pip install numpy", lambda: program([1.0]))
        with mock.patch("importlib.util.find_spec", return_value=None), self.assertRaisesRegex(ImportError, "torch 2.7 or later"):
            sys.modules.pop("fusec.torch", None)
            importlib.import_module("fusec.torch")

    def test_each_is_told(self):
        program, x = fusec.Program(ROWS), random(3, 8)
        self.refused(r"<memory>:1:\d+: error:", lambda: fusec.Program("graph g[N](x : f32[N]) -> (y : f32[N]) { y = z }"))
        self.refused("No such file", lambda: fusec.Program.open("/nowhere.fuse"))
        self.refused("is a path and no program: Program.open", lambda: fusec.Program("examples/rmsnorm.fuse"))
        self.refused("no UTF-8", lambda: fusec.Program.open(sys.executable))
        self.refused("x is missing", lambda: program())
        self.refused("takes 1 tensors", lambda: program(x, x))
        self.refused("x is given twice", lambda: program(x, x=x))
        self.refused("no input or scalar u; there are x, ", lambda: program(x, u=1))
        scaled = fusec.Program("graph s[M, N](x : f32[M, N], gamma : f32[N], eps : f32) -> (y : f32[M, N]) { y = x * gamma + eps }")
        self.refused("no input or scalar gama; did you mean gamma", lambda: scaled(gama=x[0], x=x))
        self.refused("no input or scalar esp; did you mean eps", lambda: scaled(x, x[0], esp=1))
        self.refused("no input or scalar gama; there are x, gamma, eps", lambda: scaled(x, x[0], gama=x[0], eps=1))
        self.refused("takes an array of float32, not float64", lambda: program(x.astype(np.float64)))
        self.refused(r"x has 1 axis, the graph declares 2: view it as \[M, N\]", lambda: program(x[0]))
        self.refused("no output 'u'", lambda: program.cuda(N=8, outputs=["u"]))
        self.refused("axis 'N' has no size", lambda: program.cuda())
        self.refused("unknown dtype f12", lambda: program.with_dtypes({"f32": "f12"}))
        self.refused("declares no u", lambda: program.with_dtypes({"u": "f32"}))
        self.refused("ships no graph u", lambda: fusec.graph_path("u"))
        columns = fusec.Program("graph g[N](x : f32[N]) -> (y : f32[N]) { y = x / sum[N](x) }")
        self.refused("first axis, N, is no axis of rows", lambda: columns(x))
        two = fusec.Program("graph g[M, N](x : f32[M, N], y : f32[N]) -> (z : f32[M, N]) { z = x + y }")
        self.refused("axis N is 7 in y but 8 in x", lambda: two(x, x[0, :7]))

    def test_failing_calls_hold_memory(self):
        program, x = fusec.Program(ROWS), random(2, 4)
        two = fusec.Program("graph a[N](x : f32[N]) -> (y : f32[N]) { y = x }\ngraph b[N](x : i32[N]) -> (y : i32[N]) { y = x }")
        calls = [
            lambda: fusec.Program("graph g("),
            lambda: fusec.Program("graph g[N](x : f32[N]) -> (y : f32[N]) { y = z }"),
            lambda: fusec.Program('import "nothing.fuse"'),
            lambda: fusec.Program.open("/nowhere.fuse"),
            lambda: program(x[0]), lambda: program(x.astype(np.float64)), lambda: program(x, u=1), lambda: program(),
            lambda: program.cuda(N=-1), lambda: program.cuda(N=4, outputs=["u"]), lambda: program.cuda(N=4, arch="sm_1"),
            lambda: program.explain(Q=1), lambda: program.with_dtypes({"u": "f32"}),
            lambda: two(x[0]), lambda: two.cuda(N=4, graph="c"), lambda: two.grad("b"),
        ]
        before = 0
        for i in range(2500):    # 40,000 calls
            for call in calls:
                with self.assertRaises(fusec.Error):
                    call()
            if i == 500:
                before = resident()
        self.assertLess(resident() - before, 1024)


if __name__ == "__main__":
    unittest.main()
