"""Prints the links of Markdown files that lead to no file or no heading: links.py FILE..."""

import pathlib
import re
import sys


def anchor(heading):
    """Returns the anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def prose(path):
    """Returns the text of a file without its code blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def broken(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        to = path.parent / name if name else path
        if not to.exists():
            yield f"{target}: there is no such file"
        elif fragment and fragment not in map(anchor, re.findall(r"^#+ (.*)$", prose(to), re.MULTILINE)):
            yield f"{target}: there is no such heading"


def main():
    count = 0
    for name in sys.argv[1:]:
        for fault in broken(pathlib.Path(name)):
            print(f"{name}: {fault}")
            count += 1
    return 1 if count else 0


sys.exit(main())
