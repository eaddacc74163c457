#!/usr/bin/env python3
"""Prints the package's copyright file: ours, and a paragraph for every linked crate.

Reads the output of this command from standard input:
    cargo tree --locked -p notbefore -e normal,no-proc-macro --prefix none -f '{p}|{l}'
The licence texts come from the crates' sources in cargo's registry. A crate without a known licence or text is an error.
With --whole-texts, texts that Debian has as files are at the end, once each, for archives and images without those files.
"""

import os
import re
import sys
from pathlib import Path

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 with LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
    "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "MPL-2.0+", "Unicode-3.0", "Unlicense", "Zlib",
}
# Texts in /usr/share/common-licenses: pattern of the text, and file name.
COMMON = [
    (re.compile(r"^\s*Apache License\s+Version 2\.0, January 2004(?!.*LLVM Exceptions)", re.DOTALL), "Apache-2.0"),
    (re.compile(r"^\s*Mozilla Public License,? Version 2\.0\s", re.IGNORECASE), "MPL-2.0"),
]
WHOLE_TEXTS = sys.argv[1:] == ["--whole-texts"]
AT_THE_END = {}
IS_TEXT = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
IS_HOLDER = re.compile(r"^\W*(copyright\s+(\(c\)|©|[0-9]{4}|the\s).*|(\(c\)|©)\s*[0-9]{4}.*)$", re.IGNORECASE | re.MULTILINE)


def fail(message):
    sys.exit(f"copyright.py: {message}")


def expression(crate, licence):
    """A licence as Debian writes it. Every name in it must be allowed."""
    text = re.sub(r" */ *", " OR ", licence)
    for word in ("OR", "AND", "WITH"):
        text = text.replace(f" {word} ", f" {word.lower()} ")
    names = re.split(r" or | and ", re.sub(r"[()]", "", text))
    strange = [name for name in names if name not in ALLOWED]
    if strange:
        fail(f"{crate} has the licence {licence!r}; {strange} is not among those that we may ship: replace the crate, "
             "or add the licence to ALLOWED after reading it")
    return text


def source_of(crate):
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    found = sorted(home.glob(f"registry/src/*/{crate}"))
    if not found:
        fail(f"the source of {crate} is not below {home}; run 'cargo fetch --locked' first")
    return found[0]


def texts_of(crate):
    """The licence texts of a crate, each once; a pointer where Debian has the text."""
    texts = []
    for file in sorted(source_of(crate).rglob("*")):
        if not IS_TEXT.match(file.name) or file.suffix in (".rs", ".py", ".sh") or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace").strip()
        for says, name in COMMON:
            if says.match(text):
                AT_THE_END.setdefault(name, text)
                place = "at the end of this file" if WHOLE_TEXTS else f"in /usr/share/common-licenses/{name}"
                text = f"The text of {name} is {place}."
        if text and text not in texts:
            texts.append(text)
    if not texts:
        fail(f"{crate} comes without the text of its licence; replace the crate, or have its authors add the text")
    return tuple(texts)


def holders_of(texts):
    found = [match.group(1).strip() for text in texts for match in IS_HOLDER.finditer(text)]
    return list(dict.fromkeys(found)) or ["its authors, see the text"]


def indented(text):
    return "\n".join(f" {line.rstrip()}" if line.strip() else " ." for line in text.splitlines())


def main():
    if sys.argv[1:] and not WHOLE_TEXTS:
        fail(f"unknown arguments {sys.argv[1:]}; there is only --whole-texts")
    groups = {}
    for line in sorted(set(sys.stdin.read().replace(" (*)", "").splitlines())):
        package, _, licence = line.partition("|")
        name, version, *place = package.split(" ")
        if any(part.startswith("(/") for part in place):
            continue  # Ours.
        crate = f"{name}-{version.removeprefix('v')}"
        if not licence:
            fail(f"{crate} names no licence; replace the crate")
        groups.setdefault((expression(crate, licence), texts_of(crate)), []).append(crate)
    if not groups:
        fail("there is no crate on standard input; pipe 'cargo tree' into this as the head of this file says")
    print(Path(__file__).with_name("copyright").read_text(encoding="utf-8").rstrip())
    for (licence, texts), crates in sorted(groups.items(), key=lambda group: group[1]):
        print("\nFiles:", "\n ".join(f"vendor/{crate}/*" for crate in crates))
        print("Copyright:", "\n ".join(holders_of(texts)))
        print("License:", licence)
        print(indented("\n\n".join(texts)))
    for name, text in sorted(AT_THE_END.items() if WHOLE_TEXTS else ()):
        print(f"\nLicense: {name}\n{indented(text)}")


main()
