"""Build script; removes files of earlier builds, which setuptools would add to a wheel."""

import shutil

import setuptools

shutil.rmtree("build/lib", ignore_errors=True)
setuptools.setup()
