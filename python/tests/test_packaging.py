# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml says agrees with the rest of the tree. Building a wheel: tools/check wheel."""
import pathlib
import re
import tomllib
import unittest

PYTHON = pathlib.Path(__file__).resolve().parent.parent
ROOT = PYTHON.parent


class Packaging(unittest.TestCase):
    def setUp(self):
        self.project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    def test_the_build_needs_the_versions_that_the_lock_pins(self):
        lock = dict(line.split("==") for line in (ROOT / "tools/requirements.lock").read_text().split() if "==" in line)
        lock = {name.replace("_", "-").lower(): version for name, version in lock.items()}
        for requirement in self.project["build-system"]["requires"]:
            name, version = requirement.split("==")
            self.assertEqual(lock[name], version, name)

    def test_the_version_is_the_projects(self):
        cmake = (ROOT / "CMakeLists.txt").read_text()
        self.assertEqual(self.project["project"]["version"], re.search(r"project\(millstream VERSION (\S+)", cmake)[1])
        package = (PYTHON / "millstream/__init__.py").read_text()
        self.assertEqual(self.project["project"]["version"], re.search(r'(?m)^__version__ = "(\S+)"$', package)[1])

    def test_nothing_is_required_to_use_it(self):
        self.assertNotIn("dependencies", self.project["project"])
        self.assertEqual(list(self.project["project"]["optional-dependencies"]), ["torch"])

    def test_torch_compile_finds_the_back_end(self):
        entry = self.project["project"]["entry-points"]["torch_dynamo_backends"]["millstream"]
        module, name = entry.split(":")
        source = PYTHON / (module.replace(".", "/") + ".py")
        self.assertRegex(source.read_text(), rf"(?m)^(def {name}\(|{name} =)")

    def test_the_package_is_typed(self):
        self.assertTrue((PYTHON / "millstream/py.typed").exists())
        self.assertTrue((PYTHON / "millstream/_core.pyi").exists())


if __name__ == "__main__":
    unittest.main()
