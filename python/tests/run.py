# SPDX-License-Identifier: Apache-2.0
"""Runs one test module by its file. Exit status 77 and the reason where all of it is skipped."""
import pathlib
import sys
import unittest

file = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(file.parent))
try:
    tests = unittest.defaultTestLoader.loadTestsFromName(file.stem)
except unittest.SkipTest as reason:  # what the file needs is not installed
    print(f"skipped: {reason}")
    sys.exit(77)
result = unittest.TextTestRunner(verbosity=2).run(tests)
if not result.wasSuccessful():
    sys.exit(1)
if result.skipped and len(result.skipped) >= result.testsRun:
    print(f"skipped: {result.skipped[0][1]}")
    sys.exit(77)
