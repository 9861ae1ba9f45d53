#!/usr/bin/env python3
"""Reads a checkpoint directory of this project with the libraries that t5x itself uses, and writes one for it.

  tools/check_checkpoint.py MODEL_DIR/checkpoint_1000
  tools/check_checkpoint.py --write DIR      # a small checkpoint written by TensorStore, msgpack and NumPy

Every array that the msgpack index names is opened by TensorStore with the very spec that the index holds and by
the index's own shape and dtype; a line is printed for each with shape, dtype, sum and a CRC-32 of its bytes.
Event files (events.out.tfevents.*) given instead of a directory are read by TensorBoard. The libraries are
installed from PyPI into a virtual environment of its own, in the user's cache directory, at the first call.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import zlib

PACKAGES = ["tensorstore", "msgpack", "numpy", "ml_dtypes", "tensorboard"]


def enter_venv():
    """Runs this script again by the interpreter of its virtual environment."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    venv = cache / "t5x" / "check_checkpoint_venv"
    python = venv / "bin" / "python"
    if pathlib.Path(sys.prefix) == venv:
        return
    if not (venv / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (venv / "ready").touch()
    os.execv(python, [python, *sys.argv])


def leaves(tree, prefix=""):
    for key, value in tree.items():
        name = f"{prefix}/{key}" if prefix else key
        if isinstance(value, dict) and "driver" not in value:
            yield from leaves(value, name)
        else:
            yield name, value


def unpack_extension(code, data):
    import ml_dtypes
    import msgpack
    import numpy as np

    if code not in (1, 3):
        raise SystemExit(f"unexpected msgpack extension type {code}")
    shape, dtype, raw = msgpack.unpackb(data, raw=False)
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


def check_directory(directory):
    import msgpack
    import numpy as np
    import tensorstore as ts

    index = msgpack.unpackb((directory / "checkpoint").read_bytes(), raw=False, ext_hook=unpack_extension)
    if index["version"] != 3:
        raise SystemExit(f"version {index['version']}, expected 3")
    for name, value in leaves(index["optimizer"]):
        if isinstance(value, dict):
            spec = dict(value)
            spec["kvstore"] = {"driver": "file", "path": str(directory / value["kvstore"]["path"])}
            array = ts.open(spec, open=True).result()
            if list(array.shape) != list(value["metadata"]["shape"]):
                raise SystemExit(f"{name}: shape {array.shape}, index {value['metadata']['shape']}")
            value, kind = array.read().result(), "zarr"
        else:
            value, kind = np.asarray(value), "inline"
        total = float(np.sum(value.astype(np.float64)))
        print(f"{name} {value.dtype}{list(value.shape)} {kind} sum={total:.9g} crc32={zlib.crc32(value.tobytes()):08x}")


def check_events(path):
    from tensorboard.backend.event_processing import event_file_loader
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    for event in event_file_loader.RawEventFileLoader(str(path)).Load():
        message = event_pb2.Event.FromString(event)
        for value in message.summary.value:
            plugin = value.metadata.plugin_data.plugin_name
            print(message.step, plugin, value.tag, tensor_util.make_ndarray(value.tensor))
        if message.file_version:
            print(message.file_version)


def write_directory(directory):
    import msgpack
    import numpy as np
    import tensorstore as ts

    def inline(array):
        array = np.asarray(array)
        return msgpack.ExtType(1, msgpack.packb((array.shape, array.dtype.name, array.tobytes())))

    def stored(name, array, dtype):
        metadata = {"shape": list(array.shape), "chunks": [max(1, d // 2 + d % 2) for d in array.shape],
                    "compressor": {"id": "gzip", "level": 1}}
        spec = {"driver": "zarr", "dtype": dtype, "kvstore": {"driver": "file", "path": f"{name}/"}, "metadata": metadata}
        place = dict(spec, kvstore={"driver": "file", "path": f"{directory / name}/"})
        ts.open(place, create=True).result().write(array.astype(ts.dtype(dtype).numpy_dtype)).result()
        return spec

    directory.mkdir(parents=True)
    target = {name: {"kernel": stored(f"target.{name}.kernel", np.arange(35).reshape(5, 7) / 8, dtype)}
              for name, dtype in [("a", "float32"), ("b", "bfloat16"), ("c", "int32")]}
    state = {"param_states": {"a": {"kernel": {"v": stored("state.param_states.a.kernel.v", np.ones((3, 2, 5)), "float32"),
                                               "v_row": inline(np.arange(3, dtype=np.float32))}}},
             "step": inline(np.int32(11))}
    (directory / "checkpoint").write_bytes(
        msgpack.packb({"version": 3, "optimizer": {"state": state, "target": target}}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path, help="a checkpoint_<step> directory or an event file")
    parser.add_argument("--write", action="store_true", help="write such a directory instead")
    arguments = parser.parse_args()
    enter_venv()
    if arguments.write:
        write_directory(arguments.path)
    elif arguments.path.is_dir():
        check_directory(arguments.path)
    else:
        check_events(arguments.path)


if __name__ == "__main__":
    main()
