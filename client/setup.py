"""Build the package, without the files that an earlier build left in build/lib."""

import shutil

import setuptools

shutil.rmtree("build/lib", ignore_errors=True)
setuptools.setup()
