"""Strict parameters of a notebook: what it declares, and which texts are values for that.

A notebook declares its parameters in one cell tagged `parameters` that holds nothing but assignments of literals:

    epsilon = 1.0
    quantiles = [0.25, 0.5, 0.75]
    grid: float | None = None

The literal (and the annotation, where there is one) says which values may take its place. Nothing is guessed: a value
of another type, or a name that the notebook does not declare, is refused before anything runs.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SCALARS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}
SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple"}


class ParameterError(ValueError):
    """A notebook's parameters are not declared as they should be, or a value does not fit its declaration."""


@dataclass(frozen=True)
class Shape:
    """Which values may be given: names of scalar types, and for each kind of sequence the shape of its elements.

    `anything` stands for a declaration that says nothing about the type: the elements of an empty list, or a bare None.
    """

    scalars: frozenset[str] = frozenset()
    sequences: Mapping[str, Shape] = field(default_factory=dict)
    anything: bool = False

    def __str__(self) -> str:
        if self.anything:
            return "any literal"
        parts = sorted(self.scalars - {"None"})
        parts += [f"{kind} of {element}" for kind, element in sorted(self.sequences.items())]
        return " or ".join(parts + sorted(self.scalars & {"None"}))

    def union(self, other: Shape) -> Shape:
        """The shape that allows what either of the two allows."""
        sequences = dict(self.sequences)
        for kind, element in other.sequences.items():
            sequences[kind] = sequences[kind].union(element) if kind in sequences else element
        return Shape(self.scalars | other.scalars, sequences, self.anything or other.anything)


ANYTHING = Shape(anything=True)


@dataclass(frozen=True)
class Parameter:
    """One declared parameter: its name, its default and the shape of the values that may replace it."""

    name: str
    default: Any
    shape: Shape

    def parse(self, text: str) -> Any:
        """Read a value from the command line's text.

        Raises:
            ParameterError: the text is no value of the declared type; the message names the parameter.
        """
        try:
            return _fit(_read(text, self.shape), self.shape)
        except ParameterError as error:
            raise ParameterError(f"parameter {self.name!r} takes {self.shape}: {error}") from None


def shape_of(value: Any) -> Shape:
    """The shape that a literal declares.

    >>> print(shape_of([0.25, 0.5]))
    list of float
    >>> print(shape_of(("a", None)))
    tuple of str or None
    """
    if type(value) in SEQUENCES:
        element = Shape()
        for item in value:
            element = element.union(Shape(frozenset({"None"})) if item is None else shape_of(item))
        return Shape(sequences={SEQUENCES[type(value)]: element if len(value) else ANYTHING})
    if value is None:
        return ANYTHING
    if type(value) in SCALARS:
        return Shape(frozenset({SCALARS[type(value)]}))
    raise ParameterError(f"a {type(value).__name__} cannot be a parameter")


def declared(source: str) -> dict[str, Parameter]:
    """The parameters that the source of a `parameters` cell declares, in order.

    Parameters:
        source: Python code, assignments of literals to single names only; comments and annotations are fine.

    Raises:
        ParameterError: the code does anything else, or declares a name twice.

    >>> {name: str(parameter.shape) for name, parameter in declared("epsilon = 1.0\\nfast = False").items()}
    {'epsilon': 'float', 'fast': 'bool'}
    """
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(f"the parameters cell is not Python code: {error.msg} (line {error.lineno})") from None
    found: dict[str, Parameter] = {}
    for statement in body:
        parameter = _declaration(statement)
        if parameter.name in found:
            raise ParameterError(f"the parameters cell declares {parameter.name!r} twice")
        found[parameter.name] = parameter
    return found


def parse_all(parameters: Mapping[str, Parameter], given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Typed values for pairs of name and text, each checked against its declaration.

    Raises:
        ParameterError: a name is not declared or given twice, or a text is no value of the declared type.

    >>> parse_all(declared("epsilon = 1.0"), [("epsilon", "2")])
    {'epsilon': 2.0}
    >>> parse_all(declared("epsilon = 1.0"), [("epsilom", "2")])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    pqlab.pages.parameters.ParameterError: no parameter is named 'epsilom' (did you mean 'epsilon'?); the notebook...
    """
    values: dict[str, Any] = {}
    names = ", ".join(parameters) or "none"
    for name, text in given:
        if name not in parameters:
            near = difflib.get_close_matches(name, parameters, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ParameterError(f"no parameter is named {name!r}{hint}; the notebook declares: {names}")
        if name in values:
            raise ParameterError(f"parameter {name!r} is given twice")
        try:
            values[name] = parameters[name].parse(text)
        except ParameterError as error:
            raise ParameterError(f"{error}; the notebook declares: {names}") from None
    return values


def code_for(values: Mapping[str, Any]) -> str:
    """Python code that assigns the values, for a cell that follows the declarations.

    >>> print(code_for({"epsilon": float("inf"), "quantiles": (0.1, 0.9)}))
    epsilon = float('inf')
    quantiles = (0.1, 0.9)
    """
    return "\n".join(f"{name} = {_literal(value)}" for name, value in values.items())


def _literal(value: Any) -> str:
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _declaration(statement: ast.stmt) -> Parameter:
    target: ast.expr | None = None
    value: ast.expr | None = None
    annotation: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign):
        target, value, annotation = statement.target, statement.value, statement.annotation
    if not isinstance(target, ast.Name) or value is None:
        raise ParameterError(
            f"the parameters cell holds more than 'name = literal' in line {statement.lineno}: {ast.unparse(statement)}"
        )
    try:
        default = ast.literal_eval(value)
        shape = shape_of(default)
    except (ValueError, ParameterError):
        raise ParameterError(
            f"the default of parameter {target.id!r} is no plain literal: {ast.unparse(value)}"
        ) from None
    if annotation is not None:
        shape = _shape_of_annotation(target.id, annotation)
        try:
            default = _fit(default, shape)
        except ParameterError as error:
            raise ParameterError(f"the default of parameter {target.id!r} is not {shape}: {error}") from None
    return Parameter(target.id, default, shape)


def _shape_of_annotation(name: str, annotation: ast.expr) -> Shape:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _shape_of_annotation(name, left).union(_shape_of_annotation(name, right))
        case ast.Constant(value=None):
            return Shape(frozenset({"None"}))
        case ast.Name(id=scalar) if scalar in {"bool", "int", "float", "str"}:
            return Shape(frozenset({scalar}))
        case ast.Name(id=kind) if kind in SEQUENCES.values():
            return Shape(sequences={kind: ANYTHING})
        case ast.Subscript(value=ast.Name(id="list"), slice=element):
            return Shape(sequences={"list": _shape_of_annotation(name, element)})
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[element, ast.Constant(value=value)])) if (
            value is Ellipsis
        ):
            return Shape(sequences={"tuple": _shape_of_annotation(name, element)})
    raise ParameterError(f"parameter {name!r} has an annotation that is not understood: {ast.unparse(annotation)}")


def _read(text: str, shape: Shape) -> Any:
    """The Python value that a text stands for; a text parameter takes its text as it is."""
    if shape.scalars == {"str"} and not shape.sequences:
        return text
    word = text.strip()
    if "bool" in shape.scalars and word in {"true", "false"}:
        return word == "true"
    if "float" in shape.scalars and word.lstrip("+-") == "inf":
        return float(word)
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if "str" in shape.scalars:
            return text
        raise ParameterError(f"{text!r} cannot be read as that") from None
    if _overflows(value):
        raise ParameterError(f"{text!r} is beyond the range of a float")
    return value


def _overflows(value: Any) -> bool:
    """Whether a literal, which cannot say infinity, holds a number that became it."""
    if isinstance(value, (list, tuple)):
        return any(map(_overflows, value))
    return isinstance(value, float) and math.isinf(value)


def _fit(value: Any, shape: Shape) -> Any:
    """The value if its type is allowed, an int as a float where a float is asked for; else ParameterError."""
    kind = SCALARS.get(type(value)) or SEQUENCES.get(type(value))
    if kind is None:
        raise ParameterError(f"{value!r} is a {type(value).__name__}")
    if isinstance(value, float) and math.isnan(value):
        raise ParameterError("NaN is no value")
    if type(value) in SEQUENCES and (shape.anything or kind in shape.sequences):
        element = ANYTHING if shape.anything else shape.sequences[kind]
        return type(value)(_fit(item, element) for item in value)
    if shape.anything or kind in shape.scalars:
        return value
    if kind == "int" and "float" in shape.scalars:
        try:
            return float(value)
        except OverflowError:
            raise ParameterError(f"{value!r} is beyond the range of a float") from None
    raise ParameterError(f"{value!r} is {'None' if value is None else 'of type ' + kind}")
