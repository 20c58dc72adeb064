"""Removes what setuptools would add to a wheel: the files that an earlier build, of any commit, has left."""

import shutil

import setuptools

shutil.rmtree("build/lib", ignore_errors=True)
setuptools.setup()
