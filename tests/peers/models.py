#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes build/models: real ONNX models, their inputs and the outputs they must give, listed in index.json.

 - the nine light_*.onnx networks of the onnx package (full topologies, constant weights), with the shipped outputs
 - the three OCR networks inside the rapidocr-onnxruntime wheel, which is unpacked and never installed
 - four networks exported from PyTorch (networks.py), one of them with control flow
 - `NAME_rw`: the first two kinds with seeded random weights (reweight.py)

References come from onnxruntime with its graph optimisations off, except where the onnx package ships the outputs.
A model that is up to date is left alone: the stamp of each is a hash of these scripts and the lock file.

    models.py [--only NAME]... [--list]
"""
import argparse
import hashlib
import importlib.util
import json
import logging
import pathlib
import shutil
import sys
import time
import warnings
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "models"
RTOL = 1e-3
ATOL_SHARE = 1e-6  # atol = ATOL_SHARE * max|reference|, over all outputs' own maxima

LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")
# name -> (file in the wheel, sizes for --dim, shape of the input)
OCR = {
    "ocr_det": ("ch_PP-OCRv4_det_infer.onnx",
                {"p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 192, "p2o.DynamicDimension.2": 256}, (1, 3, 192, 256)),
    "ocr_rec": ("ch_PP-OCRv4_rec_infer.onnx",
                {"p2o.DynamicDimension.0": 1, "?": 48, "p2o.DynamicDimension.1": 160}, (1, 3, 48, 160)),
    # Both image sizes are called "?" in the file, so they are one number; its batch size has no name, so its place is one.
    "ocr_cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x.0": 1, "?": 96}, (1, 3, 96, 96)),
}
TORCH = ("torch_resnet", "torch_inception", "torch_transformer", "torch_decoder")


def names() -> list[str]:
    return [n for base in ("light_" + n for n in LIGHT) for n in (base, base + "_rw")] + \
           [n for base in OCR for n in (base, base + "_rw")] + list(TORCH)


def stamp() -> str:
    digest = hashlib.sha256()
    for path in (pathlib.Path(__file__), ROOT / "tests/peers/reweight.py", ROOT / "tests/peers/networks.py", ROOT / "tools/requirements.lock"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def reference(path: pathlib.Path, inputs: dict) -> dict:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def check_worth(name: str, outputs: dict, strict: bool) -> None:
    """A reference that is constant, not finite or one-hot would agree with wrong results: refuse to write it.

    Not `strict` for models used as they were shipped, whose weights are not ours to choose.
    """
    import numpy as np

    for output, value in outputs.items():
        if not np.isfinite(value).all():
            raise ValueError(f"{name}: output {output} is not finite")
        distinct = len(np.unique(value)) / value.size
        if strict and (distinct < 0.5 or np.std(value) < 1e-8):
            raise ValueError(f"{name}: output {output} says little: {distinct:.0%} distinct values, std {np.std(value):.3g}")
        top = np.max(np.abs(value))
        nothing = float(np.mean(np.abs(value) < 1e-6 * top))
        if strict and nothing > 0.4:
            raise ValueError(f"{name}: output {output} is saturated: {nothing:.0%} of it is below a millionth of {top:.3g}")


def write_entry(name: str, folder: pathlib.Path, model: str, dims: dict, inputs: dict, outputs: dict, shipped: dict,
                reweighted: bool, source: str) -> None:
    """Tensors as files, and entry.json; `shipped` maps outputs to .pb files that are already in the folder."""
    import numpy as np

    files = {"inputs": {}, "outputs": dict(shipped)}
    for kind, tensors in (("inputs", inputs), ("outputs", outputs)):
        for index, (tensor, value) in enumerate(tensors.items()):
            if kind == "outputs" and tensor in shipped:
                continue
            file = f"{kind[:-1]}_{index}.npy"
            np.save(folder / file, value)
            files[kind][tensor] = file
    place = lambda mapping: {key: f"{name}/{file}" for key, file in mapping.items()}
    entry = {
        "name": name, "model": f"{name}/{model}", "dims": dims,
        "inputs": place(files["inputs"]), "outputs": place(files["outputs"]),
        "rtol": RTOL, "atol": ATOL_SHARE * max(float(np.max(np.abs(v))) for v in outputs.values()),
        "reweighted": reweighted, "control_flow": has_bodies(folder / model), "source": source,
    }
    (folder / "entry.json").write_text(json.dumps(entry, indent=1))


def has_bodies(path: pathlib.Path) -> bool:
    import onnx

    return any(a.HasField("g") for n in onnx.load(path, load_external_data=False).graph.node for a in n.attribute)


def picture(shape: tuple, rng):
    """Rows of letter-like dark marks on a light ground, in the value range (-1, 1) that the OCR networks expect."""
    import numpy as np

    height, width = shape[2:]
    image = np.full((height, width), 0.9, np.float32)
    for top in range(10, height - 31, 40):
        for left in range(12, width - 20, 18):
            if rng.random() < 0.85:
                glyph = np.kron(rng.random((7, 5)) < 0.5, np.ones((4, 3), bool))
                image[top:top + 28, left:left + 15][glyph] = -0.9
    tint = np.array([1, 0.95, 0.9], np.float32).reshape(3, 1, 1)
    return np.broadcast_to(image * tint + rng.normal(0, 0.02, shape), shape).astype(np.float32)


def fresh_folder(name: str) -> pathlib.Path:
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write_reweighted(base: str, model, dims: dict, shape: tuple, input_name: str, source: str) -> str:
    import numpy as np
    import onnx
    from reweight import generator_for, reweight

    name = base + "_rw"
    folder = fresh_folder(name)
    inputs = {input_name: generator_for(name + " input").standard_normal(shape).astype(np.float32)}
    fresh, count = reweight(model, name, inputs)
    onnx.save(fresh, folder / f"{name}.onnx")
    outputs = reference(folder / f"{name}.onnx", inputs)
    check_worth(name, outputs, strict=True)
    write_entry(name, folder, f"{name}.onnx", dims, inputs, outputs, {}, True, source + ", re-weighted")
    return f"{count} weights replaced"


def make_light(name: str) -> str:
    import numpy as np
    import onnx

    base = name.removesuffix("_rw")
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    model = onnx.load(data / f"{base}.onnx")
    known = {t.name for t in model.graph.initializer}
    (graph_input,) = [i for i in model.graph.input if i.name not in known]
    shape = tuple(d.dim_value for d in graph_input.type.tensor_type.shape.dim)
    source = f"onnx {onnx.__version__}, {base}.onnx"
    if name != base:
        return write_reweighted(base, model, {}, shape, graph_input.name, source)
    folder = fresh_folder(name)
    shutil.copy(data / f"{base}.onnx", folder)
    count = int(np.prod(shape))
    inputs = {graph_input.name: (np.arange(count, dtype=np.float32) / np.float32(count)).reshape(shape)}
    outputs, shipped = {}, {}
    for index, output in enumerate(model.graph.output):
        file = data / f"{base}_output_{index}.pb"
        if file.exists():
            shutil.copy(file, folder)
            shipped[output.name] = file.name
            outputs[output.name] = onnx.numpy_helper.to_array(onnx.load_tensor(str(file)))
    if len(shipped) < len(model.graph.output):
        outputs = {**reference(folder / f"{base}.onnx", inputs), **outputs}
    check_worth(name, outputs, strict=False)
    write_entry(name, folder, f"{base}.onnx", {}, inputs, outputs, shipped, False, source)
    return f"{len(shipped)} shipped output"


def make_ocr(name: str) -> str:
    import onnx
    from reweight import generator_for

    base = name.removesuffix("_rw")
    file, dims, shape = OCR[base]
    wheels = sorted((ROOT / ".venv/wheels").glob("rapidocr_onnxruntime-*.whl"))
    if not wheels:
        raise FileNotFoundError(".venv/wheels has no rapidocr_onnxruntime wheel: delete .venv and run tools/setup")
    source = f"{wheels[0].name.rsplit('-', 3)[0]}, {file}"
    with zipfile.ZipFile(wheels[0]) as wheel:
        data = wheel.read(f"rapidocr_onnxruntime/models/{file}")
    model = onnx.load_from_string(data)
    if name != base:
        return write_reweighted(base, model, dims, shape, model.graph.input[0].name, source)
    folder = fresh_folder(name)
    (folder / f"{base}.onnx").write_bytes(data)
    inputs = {model.graph.input[0].name: picture(shape, generator_for(name))}
    outputs = reference(folder / f"{base}.onnx", inputs)
    check_worth(name, outputs, strict=False)
    write_entry(name, folder, f"{base}.onnx", dims, inputs, outputs, {}, False, source)
    return "as shipped"


def make_torch(name: str) -> str:
    import numpy as np
    import onnx
    import torch
    from networks import export, networks

    folder = fresh_folder(name)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it names optional packages that are not there
    module, inputs = networks()[name]
    path = folder / f"{name}.onnx"
    own = export(module, inputs, str(path))
    model = onnx.load(path, load_external_data=False)
    arrays = {key: value.numpy() for key, value in inputs.items()}
    outputs = reference(path, arrays)
    for key, value in outputs.items():
        np.testing.assert_allclose(value, own[key].numpy(), rtol=1e-2, atol=1e-4 * np.max(np.abs(value)), err_msg=f"{name}: torch and onnxruntime differ")
    check_worth(name, outputs, strict=True)
    opset = max(o.version for o in model.opset_import if o.domain == "")
    write_entry(name, folder, f"{name}.onnx", {}, arrays, outputs, {}, True, f"torch {torch.__version__.split('+')[0]} export, opset {opset}")
    return f"opset {opset}, IR {model.ir_version}"


def make(name: str) -> str:
    if name.startswith("light_"):
        return make_light(name)
    return make_ocr(name) if name.startswith("ocr_") else make_torch(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="make only these (index.json lists what is there)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names()))
        return 0
    unknown = set(options.only or []) - set(names())
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; --list names them")
    OUT.mkdir(parents=True, exist_ok=True)
    wanted, mark, begin = options.only or names(), stamp(), time.monotonic()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    todo = [n for n in wanted if not (OUT / n / "stamp").exists() or (OUT / n / "stamp").read_text() != mark]
    if any(n in TORCH for n in todo) and importlib.util.find_spec("torch") is None:
        print("error: torch is not installed, and these are exported from it: " + ", ".join(TORCH) +
              "\n  help: tools/setup adds it; --only NAME makes single models", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index, name in enumerate(todo):
            began = time.monotonic()
            said = make(name)
            (OUT / name / "stamp").write_text(mark)
            print(f"models: {index + 1}/{len(todo)} {name}: {said}, {time.monotonic() - began:.1f} s", flush=True)
    entries = [json.loads((OUT / n / "entry.json").read_text()) for n in names() if (OUT / n / "stamp").exists()]
    (OUT / "index.json").write_text(json.dumps(entries, indent=1) + "\n")
    print(f"models: {len(entries)} in {OUT.relative_to(ROOT)}, {len(todo)} made in {time.monotonic() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
