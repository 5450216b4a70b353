"""Random trees of headers that include one another in every spelling, many in one compilation.

Each tree has names of its own, so one run of a compiler reads all of them. A header declares
a variable for each thing that can change: whether it was read at all, a number that edits change,
and the answers to what it asks. The declarations of a tree are all that its code depends on.
"""

import random
from pathlib import Path

# A header of the last directory is always there: no include fails, whatever is edited.
DIRS = ("i1", "i2", "i3")
NAMES = 4
QUESTIONS = 2

PLAIN = [
    "#include {name}",
    "  #\t include   {name}",
    "#include{name}",
    "/* c */ #include {name}",
    "/* one\n two */ #include {name}",
    "/* a */ /* b\n */# /* c */ include /* d */ {name} // e",
    "/**//**/#/**/include/**/{name}/**/",
    "/* \" */ #include {name} /* ' \n */",
    "%:include {name}",
    "\f#include {name}",
    "\v#\f include\v{name}",
    "#include\f{name}",
    "#inc\\\nlude {name}",
    "#\\\ninclude {name}",
    "#include \\\n {name}",
    "#include \\\n\\\n{name}",
    "/\\\n* c *\\\n/ #include {name}",
    "#include {name} \\\n",
    "#include {name}\r",
    "#inc\\\r\nlude {name}\r\n",
    "#include {split}",
    "#include {name} /* // */ // /* \n",
    "// a comment \\\n that goes on\n#include {name}",
    'const char* {v}_s = "/*"; // "\n#include {name}\nconst char* {v}_e = "*/";',
    "const char {v}_q = '\"'; /* ' */\n#include {name}\nconst char {v}_r = '\"';",
    'const char* {v}_s = R"x(/* )" // )x"; //\n#include {name}\n/* */',
    'const char* {v}_s = R"(\n"/*\\\n)";\n#include {name}\n/* */',
    'const char* {v}_s = R"(" /* )";\n#include {name}\n/* */',
    "int {v}_n = 1'0; int {v}_c = '/*';\n#include {name}\n/* */",
    "int {v}_n = 1'000 + 0x1'f; /* ' */\n#include {name}\nint {v}_m = 2'0;",
    "#if 0\n it's /* not closed\n */\n#endif\n#include {name}",
    '#if 0\n"\n#endif\n#include {name}',
    "#define {v}_M(x) #x /* \\\n */\n#include {name}",
    "#define {v}_H {name}\n#include {v}_H",
    "#define {v}_H {name}\n#define {v}_G {v}_H\n#include {v}_G // c",
    "#ifdef NEVER\n#define {v}_H <nowhere.h>\n#else\n#define {v}_H {name}\n#endif\n#include {v}_H",
    "#define {v}_F(x) x\n#define {v}_H {v}_F({name})\n#include {v}_H",
    "#define {v}_P(a, b) a##b\n#define {v}_HH {name}\n#include {v}_P({v}_, HH)",
    "#define {v}_\\\nH {name}\n#include {v}_H",
    "#undef {v}_U\n#\n#define {v}_U {name}\n#include /**/ {v}_U /**/",
    "#import {name}",
]
STRINGIFIED = [
    "#define {v}_S_(x) #x\n#define {v}_S(x) {v}_S_(x)\n#include {v}_S({bare})",
    "#define {v}_S(...) #__VA_ARGS__\n#include {v}_S({bare})",
    "#define {v}_S_(x) #x\n#define {v}_S(x) {v}_S_(x)\n#define {v}_N {bare}\n#include {v}_S({v}_N)",
    "#define {v}_C(a, b) <a##b>\n#include {v}_C({head}, {tail})",
]
NEXT = ["#include_next {name}", "# /* c */ include_next {name}", "%:include_\\\nnext {name}"]
ASKED = [
    "__has_include({name})",
    "__has_include( {name} ) && 1",
    "(__has_include(/**/{name}))",
    "__has_include \\\n({name})",
    "__has_\\\ninclude({name})",
    "!__has_include({name})",
    "1 - /* c\n */ __has_include({name})",
]
ASKED_BY_MACRO = [
    ("#define {v}_H {name}", "__has_include({v}_H)"),
    ("#define {v}_A __has_include({name})", "{v}_A"),
    ("#define {v}_A(x) __has_include(x)", "{v}_A({name})"),
    (
        "#define {v}_C_(a, b) a##b\n#define {v}_C(a, b) {v}_C_(a, b)",
        "{v}_C(__has_, include)({name})",
    ),
    ("#define {v}_C(a, b) a##b\n#define {v}_I {v}_C(__has, _include)", "{v}_I({name})"),
    (
        "#define {v}_B __has_include\n#define {v}_A(x) {v}_B(x)\n#define {v}_H {name}",
        "{v}_A({v}_H)",
    ),
]
TRIGRAPHS = ["??=include {name}", "#inc??/\nlude {name}", "/* ??/\n */ ??=include {name}"]


class Tree:
    """One source with its headers.

    Parameters
    ----------
    root : Path
        The directory that trees share.
    number : int
        Which tree it is.
    seed : int
        What decides everything else.
    compiler : str
        ``g++``, ``clang++`` or ``nvrtc``; what it does not take is left out.
    """

    def __init__(self, root: Path, number: int, seed: int, compiler: str, *, old: bool = False):
        self.root = root
        self.label = f"t{number}"
        self.random = random.Random(seed)
        self.compiler = compiler
        self.old = old
        self.made = 0
        self.files: dict[Path, str] = {}
        self.source = root / "src" / f"{self.label}.cu"
        self.add(self.source, 0)
        for index in range(1, NAMES + 1):
            self.add(self.place("i3", index), index)
            for folder in ("src", "src/sub", "i1", "i2", "out"):
                if self.random.random() < 0.3 or folder == "out":
                    self.add(self.place(folder, index), index)
        for path, text in self.files.items():
            write(path, text)

    def place(self, folder: str, index: int) -> Path:
        """Where the header of an index is in a folder; odd ones are in a directory of their own."""
        return self.root / folder / self.name(index)

    def name(self, index: int) -> str:
        sub = f"{self.label}d/" if index % 2 else ""
        return f"{sub}{self.label}h{index}.h"

    def question(self, index: int) -> str:
        return f"{self.label}q{index}.h"

    def fresh(self) -> str:
        """Return a name that nothing has yet."""
        self.made += 1
        return f"{self.label}_{self.made}"

    def add(self, path: Path, index: int) -> None:
        """Write a header that includes only those of higher indices."""
        v = self.fresh()
        lines = [f"#ifndef {v}_G\n#define {v}_G"] if index else []
        later = range(index + 1, NAMES + 1)
        wanted = list(later)[:2] if not index else self.random.sample(later, min(len(later), 2))
        for one in wanted:
            if self.random.random() < 0.8 or not index:
                lines.append(self.include(path, one))
        if index and index % 2 == 0 and "i3" not in path.parts and self.random.random() < 0.3:
            lines.append(self.random.choice(NEXT).format(name=f"<{self.name(index)}>"))
        for one in range(QUESTIONS):
            if self.random.random() < 0.3:
                lines.append(self.ask(one))
        lines.append(f"{declaration(v)} = 100;")
        lines += ["#endif"] if index else []
        text = "\n".join(lines) + "\n"
        if self.random.random() < 0.1:
            text = text.replace("\r", "").replace("\n", "\r\n")
        if index and self.compiler != "nvrtc" and self.random.random() < 0.05:
            text = "\ufeff" + text
        self.files[path] = text

    def include(self, path: Path, index: int) -> str:
        v = self.fresh()
        name = self.name(index)
        choices = [
            line for line in PLAIN if not (self.compiler == "nvrtc" and line.startswith("#import"))
        ]
        choices += TRIGRAPHS if self.old else []
        kind = self.random.random()
        if kind < 0.1:
            # Outside all directories, by an absolute path or by a relative one.
            name = str(self.place("out", index))
            if self.random.random() < 0.5 and path.parent == self.root / "src":
                name = f"../out/{self.name(index)}"
            spelled = f'"{name}"'
        elif kind < 0.3 and "." not in name.split("/")[0]:
            spelled = f'"{name}"'
            # The result of `##` must be one word.
            choices = [
                *choices,
                *(one for one in STRINGIFIED if "/" not in name or "##" not in one),
            ]
        else:
            spelled = self.random.choice([f'"{name}"', f"<{name}>", f'"{name}"'])
        line = self.random.choice(choices)
        middle = len(spelled) // 2
        split = f"{spelled[:middle]}\\\n{spelled[middle:]}"
        head, tail = name[:3], name[3:]
        return line.format(name=spelled, split=split, bare=name, v=v, head=head, tail=tail)

    def ask(self, index: int) -> str:
        v = self.fresh()
        name = self.random.choice(['"{}"', "<{}>"]).format(self.question(index))
        before, asked = "", self.random.choice(ASKED)
        if self.random.random() < 0.5:
            before, asked = self.random.choice(ASKED_BY_MACRO)
        condition = self.random.choice(["#if {}", "%: if {}", "#if 0\n#elif {}", "# /**/ if {}"])
        text = f"{before}\n{condition.format(asked)}\n{declaration(v)} = 1;\n#endif"
        return text.format(name=name, v=v)

    def edit(self) -> None:
        """Change one thing: a number, a header that appears, one that goes."""
        kind = self.random.random()
        if kind < 0.4:
            path = self.random.choice(sorted(self.files))
            if path != self.source:
                self.files[path] = self.files[path].replace("= 100;", f"= {self.made % 800 + 100};")
                self.made += 1
                write(path, self.files[path])
                return
        if kind < 0.6:
            folder = self.random.choice(["src", "i1", "i2", "i3"])
            write(self.root / folder / self.question(self.random.randrange(QUESTIONS)), "\n")
            return
        index = self.random.randrange(1, NAMES + 1)
        folder = self.random.choice(["src", "src/sub", "i1", "i2"])
        path = self.place(folder, index)
        if path in self.files:
            path.unlink()
            del self.files[path]
        else:
            self.add(path, index)
            write(path, self.files[path])


def declaration(v: str) -> str:
    return f'extern "C" __device__ int {v}_x'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file is overwritten in place: the inode stays.
    path.write_bytes(text.encode())
