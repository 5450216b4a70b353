"""The C++ reference: what the headers declare, in the words of their comments.

The headers are formatted by clang-format and commented by habit: a ``//`` block right above a
declaration belongs to it, so does a ``//`` at its end. This reads no C++ but that.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from culaunch._launch.launches.launch_options import OPTIONS, LaunchOption

HEADERS = Path(__file__).parents[2] / "include" / "culaunch"
_INNER = re.compile(r"\nnamespace detail \{.*?\n\}  // namespace detail\n", re.DOTALL)
_NAMESPACE = re.compile(r"^(namespace \w+ \{|\}  // namespace \w+|using .*;)$", re.MULTILINE)
_NO_CODE = re.compile(r""""(\\.|[^"\\])*"|'[^']+'|//.*""")
_PLUMBING = re.compile(
    r"= (delete|default);|\bfriend\b|^~|^static_assert|^template <>|\b(?:class|struct) \w+(<|;$)"
)
_MACRO = re.compile(r"^#(?:define|undef) .*(?:\\\n.*)*$", re.MULTILINE)
# The line of LaunchConfig that makes a field of each option.
_LAUNCH_OPTIONS = re.compile(r"^  CULAUNCH_LAUNCH_ATTRIBUTES\(.*\)$", re.MULTILINE)
_OPENS = re.compile(
    r"(?:class|struct|enum class)(?: \[\[\w+\]\])? (\w+)(?: final)?"
    r"(?: : (?:public|private) [\w:]+)? \{$"
)


@dataclass
class Entity:
    """A class, an enumeration, a function, a variable or a macro, with its comment."""

    kind: str
    name: str
    declaration: str
    comment: list[str]
    members: list[Entity] = field(default_factory=list)


def cpp_reference(header: str, *left_out: str) -> str:
    """Return reStructuredText for the public declarations of a header.

    Parameters
    ----------
    header : str
        Its name below include/culaunch.
    *left_out : str
        Names that are internal to culaunch, with members as ``Class::name``.
    """
    lines: list[str] = []
    for entity in entities((HEADERS / header).read_text()):
        if entity.name in left_out:
            continue
        entity.members = [
            one for one in entity.members if f"{entity.name}::{one.name}" not in left_out
        ]
        lines += _directive(entity, "")
    return "\n".join(lines)


def entities(text: str) -> list[Entity]:
    """Read the declarations of a header outside ``namespace detail``, and its macros."""
    text = _INNER.sub("\n", text)
    body = text.partition("CULAUNCH_NAMESPACE_BEGIN\n")[2].partition("CULAUNCH_NAMESPACE_END")[0]
    body = _NAMESPACE.sub("", _MACRO.sub("", body))
    body = _LAUNCH_OPTIONS.sub("\n".join(map(_launch_option, OPTIONS.values())), body)
    # A declaration in both branches of an #if is listed once.
    found = {one.declaration: one for one in _declarations(body.splitlines()) + _macros(text)}
    return list(found.values())


def _launch_option(option: LaunchOption) -> str:
    """Return the fields of LaunchConfig that an option has, as a header would spell them."""
    fields = {
        "dims": "  Dim3 {0};  // {1}",
        "switch": "  bool {0} = false;  // {1}",
        "int": "  bool has_{0} = false;\n  int {0} = 0;  // {1}",
    }
    return fields.get(option.kind, "").format(option.name, option.text)


def _declarations(lines: list[str]) -> list[Entity]:
    """Read the declarations that start at the margin of these lines."""
    found, comment = [], []
    lines = list(lines)
    while lines:
        line = lines.pop(0)
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        if re.match(r"\s+//", line) and found:  # the comment at the line's end continues
            found[-1].comment.append(line.strip(" /"))
            continue
        if not line.strip() or line.startswith((" ", "#", "}")):
            comment = []
            continue
        statement = [line]
        while lines and not _is_whole(statement):
            statement.append(lines.pop(0))
        entity = _entity(statement, comment)
        if entity is not None:
            found.append(entity)
        comment = []
    return found


def _is_whole(statement: list[str]) -> bool:
    """Whether every bracket is closed, and a brace or a semicolon is the last of it."""
    text = _NO_CODE.sub("", "\n".join(statement)).rstrip()
    opened = len(re.findall(r"[({]", text)) == len(re.findall(r"[)}]", text))
    return opened and text.endswith((";", "}"))


def _entity(statement: list[str], comment: list[str]) -> Entity | None:
    first = next((line for line in statement if not line.startswith("template")), statement[0])
    template = " ".join(line for line in statement if line.startswith("template"))
    opens = _OPENS.match(first)
    if opens:
        inner = textwrap.dedent("\n".join(statement[statement.index(first) + 1 : -1]))
        kind = "enum-class" if first.startswith("enum") else first.split()[0]
        entity = Entity(kind, opens[1], f"{template} {opens[1]}".strip(), comment)
        entity.members = (
            _enumerators(inner) if kind == "enum-class" else _members(inner, opens[1], kind)
        )
        return entity
    text = re.sub(r"\s+", " ", " ".join(re.sub(r"//.*", "", line) for line in statement)).strip()
    trailing = re.search(r"//\s*(.*)", statement[0])
    if trailing and len(statement) == 1:
        comment = [*comment, trailing[1]]
    if _PLUMBING.search(text):
        return None
    alias = re.match(r"using (\w+) = .*(?=;$)", text)
    if alias:
        return Entity("type", alias[1], alias[0].removeprefix("using "), comment)
    head = _signature(text)
    name = re.search(r"(operator\s*(?:\(\)|\[\]|[=!<>+\-*]+)|\w+) ?\(", head)
    if re.search(r"\b[A-Z]\w*::\w+\(", head.partition("(")[0] + "("):
        return None  # a member's definition
    if "(" in head and name:
        return Entity("function", name[1], head, comment)
    variable = re.match(
        r"(?:static )?(?:constexpr )?[\w:<>*&, ]*?[\w>*&] (\w+)(\{.*\}| =.*)?;$", text
    )
    if variable is None:
        return None
    return Entity("var", variable[1], re.sub(r"(\{.*\}| = .*)?;$", "", text), comment)


def _signature(text: str) -> str:
    """Cut a function to its signature: no body, no initialisers of members."""
    depth = 0
    for index, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and (letter in "{;" or text.startswith(" : ", index)):
            text = text[:index]
            break
    return re.sub(r"^(inline|explicit) ", "", text.replace("CULAUNCH_COLD ", "").strip()).replace(
        " noexcept(", " noexcept ("
    )


def _members(body: str, owner: str, kind: str) -> list[Entity]:
    """Read the public part of a class."""
    lines, is_public = [], kind == "struct"
    for line in body.splitlines():
        label = re.fullmatch(r" ?(public|private|protected):", line)
        if label:
            is_public = label[1] == "public"
        elif is_public:
            lines.append(line)
    members = _declarations(textwrap.dedent("\n".join(lines)).splitlines())
    # Copying, moving and destroying are as their comments and the class's say.
    plain = (f"{owner}(const {owner}&", f"{owner}({owner}&&", "operator=")
    return [one for one in members if not any(word in one.declaration for word in plain)]


def _enumerators(body: str) -> list[Entity]:
    found = re.findall(r"^\s*(\w+),?(?:\s*//\s*(.*))?$", body, re.MULTILINE)
    return [Entity("enumerator", name, name, [text] if text else []) for name, text in found]


def _macros(text: str) -> list[Entity]:
    found, comment = [], []
    for line in text.splitlines():
        macro = re.match(r"#define (CULAUNCH_\w+)(\([^)]*\))?", line)
        if macro and comment:
            found.append(Entity("macro", macro[1], macro[1] + (macro[2] or ""), comment))
        if line.startswith("//"):
            comment.append(line[2:].strip())
        elif not line.startswith("#define") or line.endswith("\\"):
            comment = []  # it is for a run of macros of one line, too
    return found


def _directive(entity: Entity, indent: str) -> list[str]:
    domain = "c" if entity.kind == "macro" else "cpp"
    lines = [f"{indent}.. {domain}:{entity.kind}:: {entity.declaration}", ""]
    comment = re.sub(r"`([^`]+)`", r"``\1``", " ".join(entity.comment).replace("*", r"\*"))
    if comment:
        if re.match(r"[a-z]+\b(?![:_(])", comment):  # a word, and no name of code
            comment = comment[0].upper() + comment[1:]
        lines += [f"{indent}   {comment}{'' if comment.endswith(('.', ')')) else '.'}", ""]
    for member in entity.members:
        lines += _directive(member, indent + "   ")
    return lines
