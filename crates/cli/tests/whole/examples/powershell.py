"""Reads PowerShell by its grammar and names what it does not understand; nothing is run."""
import sys

import tree_sitter
import tree_sitter_powershell

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))


def mistakes(node):
    if node.is_error or node.is_missing:
        yield node
    for child in node.children:
        yield from mistakes(child)


wrong = 0
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        root = parser.parse(file.read()).root_node
    for node in mistakes(root):
        wrong += 1
        print(f"{path}:{node.start_point[0] + 1}: not PowerShell: {node.text[:60]!r}")
sys.exit(1 if wrong else 0)
