"""The npm package that holds the Claude Code binary for this platform, and its download through npm itself.

npm runs in the caller's environment: the caller's registry, proxy and certificates are what makes it work,
and npm checks the integrity.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from .errors import FetchError
from .progress import Progress

_PACKAGE = "@anthropic-ai/claude-code-{}"
_SYSTEMS = {"linux": "linux", "darwin": "darwin"}
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}

# npm's own codes, and what they mean to a person.
_CAUSES = {
    "ETARGET": "there is no such version",
    "E404": "the registry does not know the package",
    "ENOTFOUND": "no network, or the registry's name does not resolve",
    "EAI_AGAIN": "no network, or the registry's name does not resolve",
    "ECONNREFUSED": "the registry or proxy refuses connections",
    "ETIMEDOUT": "the registry does not answer",
    "ENOSPC": "the disk is full",
}


def platform_name() -> str:
    """The platform as npm package names have it, e.g.

    `linux-x64` or `linux-x64-musl`; raises FetchError for others.
    """
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if system is None or machine is None:
        raise FetchError(f"there is no Claude Code binary for {sys.platform} on {platform.machine()}")
    return f"{system}-{machine}{'-musl' if system == 'linux' and _is_musl() else ''}"


def download(version: str, folder: Path, progress: Progress, timeout: float = 1800.0) -> Path:
    """Fetch the package at `version` into the empty `folder` and unpack it; returns the binary.

    Raises FetchError.
    """
    package = f"{_PACKAGE.format(platform_name())}@{version}"
    _pack(package, folder, progress, timeout)
    tarballs = list(folder.glob("*.tgz"))
    if len(tarballs) != 1:
        raise FetchError(f"npm left no tarball of {package}")
    progress.update(f"unpacking {package}")
    binary = unpack(tarballs[0], folder / "unpacked")
    tarballs[0].unlink()
    return binary


def _extract(archive: tarfile.TarFile, target: Path) -> None:
    for member in archive.getmembers():
        if member.name.startswith("/") or ".." in Path(member.name).parts:
            raise tarfile.TarError(f"{member.name} lies outside")
    content = archive.extractfile("package/claude") if "package/claude" in archive.getnames() else None
    if content is not None:
        (target / "package").mkdir(parents=True, exist_ok=True)
        with content, open(target / "package" / "claude", "wb") as file:
            shutil.copyfileobj(content, file)


def unpack(tarball: Path, target: Path) -> Path:
    """Unpack an npm tarball safely and return the `claude` in it; raises FetchError."""
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(target, filter="data")
            else:  # Python before 3.11.4: the one file that is wanted, by its content alone
                _extract(archive, target)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FetchError(f"cannot unpack {tarball.name}: {error}") from error
    binary = target / "package" / "claude"
    if not binary.is_file():
        raise FetchError(f"{tarball.name} holds no claude binary")
    binary.chmod(0o755)
    return binary


def _is_musl() -> bool:
    return platform.libc_ver()[0] != "glibc" and any(Path("/lib").glob("ld-musl-*.so.1"))


def _pack(package: str, folder: Path, progress: Progress, timeout: float) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError("npm is not on PATH; install Node.js, or put a claude of a tested version on PATH")
    # A cache of its own: what has arrived can be measured in it, and the user's does not grow by 200 MB.
    cache = folder / "npm-cache"
    options = ("--cache", str(cache), "--ignore-scripts", "--loglevel", "error")
    with (folder / "npm-errors").open("w+b") as errors:
        process = subprocess.Popen(
            [npm, "pack", package, "--pack-destination", str(folder), *options],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
        try:
            _watch(process, package, cache, progress, timeout)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    shutil.rmtree(cache, ignore_errors=True)
    if process.returncode:
        raise FetchError(f"npm could not fetch {package}: {_cause(said)}")


def _watch(
    process: subprocess.Popen[bytes], package: str, cache: Path, progress: Progress, timeout: float
) -> None:
    """Show how much has arrived until the process ends. npm does not tell how much is to come."""
    begin = time.monotonic()
    while process.poll() is None:
        elapsed = time.monotonic() - begin
        if elapsed > timeout:
            raise FetchError(f"npm did not finish {package} within {timeout:g} s")
        progress.update(f"fetching {package}: {_size(cache) / 1e6:.0f} MB after {elapsed:.0f} s")
        time.sleep(0.3)


def _cause(said: str) -> str:
    for code, meaning in _CAUSES.items():
        if f"code {code}" in said:
            return f"{meaning} ({code})"
    errors = [
        line.removeprefix("npm error ").strip() for line in said.splitlines() if line.startswith("npm error")
    ]
    return " ".join(errors[:2]) or "npm did not say why"


def _size(folder: Path) -> int:
    """Bytes below `folder`; files may vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:
            continue
    return total
