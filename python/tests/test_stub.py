# SPDX-License-Identifier: Apache-2.0
"""millstream/_core.pyi says what the module says. `test_stub.py --write` makes it anew."""
import pathlib
import sys
import unittest

from millstream import _core

try:
    from nanobind.stubgen import StubGen
except ImportError as error:
    raise unittest.SkipTest(f"nanobind is not there: {error}")

FILE = pathlib.Path(__file__).resolve().parent.parent / "millstream" / "_core.pyi"

# The generator sees an exception made without it as somebody else's.
ERROR = '''class Error(RuntimeError):
    """
{doc}
    """

    code: str
    word: str
    what: str
    where: str | None
    help: str
    notes: list[str]
'''


def stub():
    generator = StubGen(_core)
    generator.put(_core)
    text = generator.get().strip().replace("from millstream import Error as Error\n", "")
    doc = "\n".join(f"    {line}".rstrip() for line in _core.Error.__doc__.splitlines())
    head, graph, rest = text.partition("class Graph:")
    return ("# SPDX-License-Identifier: Apache-2.0\n# Made by python/tests/test_stub.py --write.\n" + head.rstrip() + "\n\n\n" + ERROR.format(doc=doc) +
            "\n" + graph + rest + "\n")


class Stub(unittest.TestCase):
    maxDiff = None

    def test_the_stub_is_what_the_module_says(self):
        self.assertEqual(FILE.read_text(), stub(), "python/tests/test_stub.py --write")

    def test_everything_public_has_a_docstring_but_plain_properties(self):
        for name, thing in vars(_core).items():
            if name.startswith("_"):
                continue
            self.assertTrue(thing.__doc__, name)
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if not member.startswith("_") and callable(value):
                    self.assertTrue(value.__doc__, f"{name}.{member}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(stub())
    else:
        unittest.main()
