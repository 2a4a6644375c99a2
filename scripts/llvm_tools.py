"""Finds clang-format and clang-tidy of the one version each that the project uses; versions differ in what they say."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess

# What PyPI packages of these names bring.
VERSIONS = {"clang-format": "19.1.7", "clang-tidy": "23.1.4"}


def requirement(tool):
    """For pip: clang-format==19.1.7."""
    return f"{tool}=={VERSIONS[tool]}"


def find(tool):
    """The command of that tool, or None: what the variable CLANG_FORMAT or CLANG_TIDY names, else one on the PATH, else the
    package's."""
    major, variable = VERSIONS[tool].split(".")[0], tool.upper().replace("-", "_")
    candidates = [os.environ[variable]] if variable in os.environ else [f"{tool}-{major}", tool]
    package = importlib.util.find_spec(tool.replace("-", "_"))
    if package and package.origin:
        candidates.append(str(pathlib.Path(package.origin).parent / "data/bin" / tool))
    for command in filter(None, map(shutil.which, candidates)):
        try:
            version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.search(rf"version {major}\.", version):
            return command
    return None
