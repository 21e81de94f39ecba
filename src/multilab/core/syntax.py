"""Syntax trees as text: what a Python file computes, without parts that cannot change a number.

Unlike ``ast.dump``, the text is the same on all supported versions of Python. It ignores comments, formatting,
docstrings, ``__all__``, ``pass``, the text of raised errors, and imports for type checkers. Imports are returned
separately, so their order and place in the file do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

Imports = list[tuple[str, str]]
"""Dotted references and the names they are bound to; without a name, an attribute of an imported module."""

_NO_EFFECT = {"ctx", "kind", "type_comment", "type_ignores"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign)


class Code(NamedTuple):
    """Content of a Python file, as far as it affects results.

    Attributes
    ----------
    text : str
        Its syntax tree.
    imports : list of (str, str)
        See :data:`Imports`; modules that ``import_module`` gets by a literal name are among them.
    strings : list of str
        Its strings that are identifiers: what it may look up by name.
    environment : list of str
        Environment variables that it reads by a literal name.
    unseen : list of str
        What decides its results and is not in the file: reads of the environment and imports by a computed name, other
        files that it opens. Each is a text with its line.
    """

    text: str
    imports: Imports
    strings: list[str]
    environment: list[str]
    unseen: list[str]


class Definition(NamedTuple):
    """One top-level function, class or value of a file, or a method of a class.

    Attributes
    ----------
    text : str
        Its syntax tree, with the statements of the file that define nothing and may change anything.
    imports : list of (str, str)
        Imports of the file that it uses.
    uses : list of str
        Other definitions of the file that it uses.
    """

    text: str
    imports: Imports
    uses: list[str]


def parse_code(content: bytes, package: str) -> Code:
    """Return what a file computes.

    Parameters
    ----------
    content : bytes
        The file.
    package : str
        The package that its relative imports start from.
    """
    tree = ast.parse(content)
    imports, names = _imports(tree, package)
    strings = {node.value for node in _nodes(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    environment, modules, unseen = _read_at_run_time(tree, names)
    return Code(
        _text(tree),
        sorted(imports | {(module, "") for module in modules}),
        sorted(text for text in strings if text.isidentifier()),
        sorted(environment),
        unseen,
    )


def parse_definitions(content: bytes, package: str) -> dict[str, Definition]:
    """Return the definitions of a file by name, ``Class.method`` for the methods of its classes."""
    tree = ast.parse(content)
    imports, names = _imports(tree, package)
    parts: dict[str, list[ast.stmt]] = {}
    always: list[ast.stmt] = []
    for statement in tree.body:
        if _without_effect(statement):
            continue
        if not isinstance(statement, _DEFINITIONS):
            always.append(statement)
        for name in _defined(statement):
            parts.setdefault(name, []).append(statement)
        if isinstance(statement, ast.ClassDef):
            for method in (part for part in statement.body if isinstance(part, ast.FunctionDef)):
                parts.setdefault(f"{statement.name}.{method.name}", []).append(method)
    definitions = {}
    for name, own in parts.items():
        statements = ast.Module(list(dict.fromkeys([*own, *always])), [])
        used = {node.id for node in _nodes(statements) if isinstance(node, ast.Name)}
        inside, _ = _imports(statements, package)
        # `import a.b` binds `a`; its other reference has no name
        outside = {(reference, bound) for reference, bound in imports if (bound or reference.partition(".")[0]) in used}
        attributes = {(reference, "") for reference in _attributes(statements, names)}
        uses = sorted((used & parts.keys()) - {name})
        definitions[name] = Definition(_text(statements), sorted(inside | outside | attributes), uses)
    return definitions


def _imports(tree: ast.AST, package: str) -> tuple[set[tuple[str, str]], dict[str, str]]:
    """Return the imports of a tree, and what the names that they bind refer to."""
    imports = {pair for node in _nodes(tree) for pair in _imported(node, package)}
    names = dict(sorted((name, reference) for reference, name in imports))
    return imports | {(reference, "") for reference in _attributes(tree, names)}, names


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement defines or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    targets = [node for node in ast.walk(statement) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return {name for target in targets if (name := _root(target))}


def _root(node: ast.AST) -> str:
    """Return the name that an attribute or an item belongs to."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_ENVIRONMENT = ("os.environ", "os.environb", "os.getenv", "os.getenvb")
_IMPORTERS = ("importlib.import_module", "__import__")
_RUNNERS = ("exec", "eval", "runpy.run_path", "runpy.run_module", "importlib.util.spec_from_file_location")
_OPENERS = (
    *("open", "io.open", "os.open", "joblib.load", "torch.load", "scipy.io.loadmat", "scipy.sparse.load_npz"),
    *("numpy.fromfile", "numpy.genfromtxt", "numpy.load", "numpy.loadtxt", "numpy.memmap"),
)
_OPENING_METHODS = ("read_text", "read_bytes", "open")


def _read_at_run_time(tree: ast.AST, names: dict[str, str]) -> tuple[set[str], set[str], list[str]]:
    """Return the literal environment variables and modules that a file reads, and a text for what cannot be seen."""
    nodes = [node for node in _nodes(tree) if isinstance(node, ast.expr)]
    parents = {child: node for node in _nodes(tree) for child in ast.iter_child_nodes(node)}
    environment, modules, unseen = set(), set(), set()
    for node in nodes:
        called = parents.get(node)
        arguments = called.args if isinstance(called, ast.Call) and called.func is node else None
        dotted = _dotted(node, names)
        if dotted in _ENVIRONMENT:
            read = _variable(node, parents)
            if read is None:
                unseen.add((node.lineno, "reads the environment by a computed name"))
            elif read:
                environment.add(read)
        elif arguments is None:
            continue
        elif dotted in _IMPORTERS:
            literal = _literal(arguments)
            if literal is None or literal.startswith("."):
                unseen.add((node.lineno, "imports a module by a computed name"))
            else:
                modules.add(literal)
        elif dotted in _RUNNERS:
            unseen.add((node.lineno, f"runs code with {dotted.rpartition('.')[2]}()"))
        elif (
            dotted in _OPENERS
            or dotted.startswith(("pandas.read_", "pickle.load"))
            or (isinstance(node, ast.Attribute) and node.attr in _OPENING_METHODS)
        ):
            unseen.add((node.lineno, "opens a file"))
    return environment, modules, [f"line {line} {what}" for line, what in sorted(unseen)]


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return the dotted reference of an imported name or attribute, or a name that is not imported as it is."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([names.get(node.id, node.id), *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _variable(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str | None:
    """Return the literal name of the variable that ``os.environ`` or ``os.getenv`` reads here.

    An empty text where the environment is only changed; None where the name is computed.
    """
    use = parents.get(node)
    if isinstance(use, ast.Subscript):
        return _literal([use.slice]) if isinstance(use.ctx, ast.Load) else ""
    if isinstance(use, ast.Compare) and node in use.comparators:
        return _literal([use.left])
    if isinstance(use, ast.Attribute) and use.attr in ("update", "__setitem__", "__delitem__"):
        return ""
    function = (
        use if isinstance(use, ast.Attribute) and use.attr in ("get", "pop", "setdefault", "__getitem__") else node
    )
    call = parents.get(function)
    if not isinstance(call, ast.Call) or call.func is not function:
        return None
    return _literal(call.args or [keyword.value for keyword in call.keywords[:1]])


def _literal(arguments: list[ast.expr]) -> str | None:
    value = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else None


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those for type checkers only."""
    for child in ast.iter_child_nodes(tree):
        if not _for_type_checkers(child):
            yield child
            yield from _nodes(child)


def _for_type_checkers(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING"


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield what an import statement refers to: the reference, and the name it is bound to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield from [(alias.name, alias.asname)] if alias.asname else [(top, top), (alias.name, "")]
    elif isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing"):
        parents = package.split(".")
        stem = [*parents[: len(parents) - node.level + 1]] if node.level else []
        for alias in node.names:
            yield ".".join([*stem, *filter(None, [node.module]), alias.name]), alias.asname or alias.name


def _attributes(tree: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Yield the dotted references of attributes of imported names: ``methods.MLkNN`` may load a file lazily."""
    for node in _nodes(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in names:
            yield ".".join([names[node.id], *reversed(parts)])


def _text(node: object, raised: bool = False) -> str:
    """Return a node as text: its class and the fields that are not empty."""
    if isinstance(node, list):
        return f"[{','.join(_text(item, raised) for item in node if not _without_effect(item))}]"
    if raised and (isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)):
        return "Message"
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr[{','.join(_pieces(node))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = [
        f"{name}={_text(value, raised or isinstance(node, ast.Raise))}"
        for name in node._fields
        if name not in _NO_EFFECT and (value := getattr(node, name, None)) is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(fields)})"


def _pieces(node: ast.JoinedStr) -> Iterator[str]:
    """Yield the pieces of an f-string; versions of Python cut its constant text differently."""
    text = ""
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            text += str(piece.value)
            continue
        if text:
            yield ascii(text)
        text = ""
        yield _text(piece)
    if text:
        yield ascii(text)


def _without_effect(node: object) -> bool:
    """Tell whether a statement cannot change a result, or is counted elsewhere."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [getattr(target, "id", "") for target in targets] == ["__all__"]
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.AST) and _for_type_checkers(node)
    )
