"""The rules of docs/dev/style.md as patterns, and the check of one sentence against them."""

from __future__ import annotations

import re

LONGEST = 30  # words; the guide says 25, and this leaves room for a name in the middle

_START = "start with the subject"
# Each rule: the advice that a finding prints, and the pattern. Patterns ignore case.
PATTERNS = {
    "say what it is, not that it is none": r"(?<!there )\b(?:is|are|was|were|be) (?-i:none)\b",
    "write 'whose', or a sentence of its own": r"\bof (?:which|whom|whose)\b",
    "name the thing again, or use a possessive": r"\bthat of\b",
    "write 'nor' or 'not ... either'": r"\b(?:a|an|the) [\w-]+ neither\b|\band neither\b",
    "drop it, or write 'still' or 'always'": r"\bas ever\b",
    "write 'this', 'these' or 'one'": r"\bsuch (?:an?|as it|one)\b",
    "drop it, or write 'also'": r"\bwhat is more\b",
    "write 'so', or two sentences": r"\bso that\b",
    "write 'available'": r"\b(?:is|are|was|were) to be had\b",
    "write 'if', not 'where'": (
        r"\bwhere (?:there (?:is|are)|it has|they have) none\b"
        r"|\b(?:null|false|None|empty|nothing|error|0|-1|\"\") where "
        r"(?:it|they|there|that|no|nothing|one|the|a)\b"
    ),
    "write 'record'": r"\btakes? note of\b",
    "write 'about'": r"\bsome \d",
    "name the reader in a sentence: 'Read this page if ...'": r", for you if\b",
    "write 'as in ...', or 'in the form of ...'": (
        r"\bas (?:it|they|JSON|C|Python|expressions?) (?:has|have) it\b"
    ),
    "write 'continue'": r"\bgo(?:es)? on (?:at|with|from|there)\b",
    "write 'reported to'": r"\b(?:is|are|was|were) told of\b",
    "write 'is missing'": r"\bmisses (?:argument|parameter)\b",
    "start with the noun": r"\bhere it is\b",
    "repeat the verb": r"\b(?:and|as|for) so (?:is|are|does|do|has|have)\b",
    "start with the subject, not with a 'what' clause": (
        r"^(?:what|whatever|whoever|who)(?= \w+ \w+ \w)(?!.*\?)"
    ),
    _START: (
        r"^(?:of (?:an?|the|these|those|this|its|their|all|what)\b|nor (?:is|are|do|does|has|can)\b"
        r"|neither (?:is|are|do|does|has|can)\b|from what\b|to what\b|by what\b|with what\b)"
    ),
    "name the thing, not 'what is ...'": (
        r"\bwhat (?:is|are|was|were|has|had|have|it|they) "
        r"(?:no|not|new|there|given|made|left|known|asked|none|never|made of)\b"
    ),
    "write 'only' before the noun": r"(?<!let )(?<!leave )(?<!left )(?<!stand )\balone\b[.,;:)]",
    "write the usual word": (
        r"\b(?:anew|thereof|therein|whereof|wherein|whence|hence|thus|amiss|nought|whoever"
        r"|somebody|everybody|anew|beforehand|in the place of|for want of|for lack of|put right"
        r"|hitherto|lest|save for|but for|by itself alone|taken for|wrongly reused)\b"
    ),
    "American spelling": (
        r"\b(?:\w+(?:al|il|ol|im|om|er|or|ar|on|st|it|ogn|iv)is(?:e|ed|es|ing|ation|ations)"
        r"|colou?r(?<!color)\w*|behaviou?r(?<!behavior)\w*|neighbou?r(?<!neighbor)\w*"
        r"|favou?r(?<!favor)\w*|centre\w*|licence\w*|grey|whilst|amongst|analys(?:e|ed|es|ing)"
        r"|(?:label|model|cancel|travel|signal|unravel)l(?:ed|ing)|catalogue\w*|defence|artefact\w*)\b"
    ),
}
# The same for messages only, whose errors have one form: "NAME must be RULE, got VALUE: NEXT STEP".
MESSAGE_PATTERNS = {
    "write 'NAME must be ...'": (
        r"\btakes (?:exactly|numbers from)\b|^(?:argument|X)\b[^:;]*, takes\b"
    ),
    "write 'is not a ...'": (
        r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|way\b)\w+"
    ),
    "write 'each item of NAME must be ...'": r"\bhas an item that is not\b",
    "write 'have the name'": r"\b(?:functions|kernels|nodes|variables) are called\b",
    "write 'but'": r", and it (?:has|takes|is)\b",
}
# Words that the pattern of British endings finds and that are American, too.
AMERICAN = {
    "promise", "promised", "promises", "promising", "premise", "premises", "precise", "otherwise",
    "raise", "raised", "raises", "raising", "noise", "poise", "exercise", "exercised", "exercises",
    "exercising", "comprise", "comprised", "comprises", "surprise", "surprised", "surprises",
    "surprising", "enterprise", "concise", "arise", "arises", "arising", "wise", "rise", "rises",
    "elementwise", "likewise", "bitwise", "pairwise", "advise", "advised", "revise", "revised",
    "supervise", "televise", "expertise", "improvise", "demise", "appraise", "praise", "paradise",
    "treatise", "bruise", "cruise", "disguise", "merchandise", "compromise", "liaise", "tortoise",
}  # fmt: skip
# Verbs whose participle is no passive: what a thing is like, not what is done to it.
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|been|be|being) (?:\w+ly )?"
    r"(\w+(?:ed|wn|ught|ade|pt)|read|written|set|put|found|sent|run|held|given)\b",
    re.IGNORECASE,
)
_COMPILED = {advice: re.compile(pattern, re.IGNORECASE) for advice, pattern in PATTERNS.items()}
_COMPILED_FOR_MESSAGES = {
    advice: re.compile(pattern, re.IGNORECASE) for advice, pattern in MESSAGE_PATTERNS.items()
}
_WORD = re.compile(r"[\w$@%#&'+*/\\.=<>{}()\[\]:\"-]*[\w$%)\]}\"]")


def check(
    sentence: str,
    *,
    is_phrase: bool = False,
    is_heading: bool = False,
    is_note: bool = False,
    is_message: bool = False,
) -> list[str]:
    """Return the problems of a sentence, each with the words that were found."""
    # A heading may ask: "What it refuses".
    if is_heading:
        sentence = f"Heading: {sentence}?"
    found = []
    if not is_phrase:
        words = len(_WORD.findall(sentence))
        if words > LONGEST:
            found.append(f"{words} words; write at most 25 in a sentence")
        if sentence.count(";") > 1:
            found.append("several semicolons; write several sentences")
        if len(PASSIVE.findall(sentence)) > 2:
            found.append("a chain of passives; say who does it")
    patterns = {**_COMPILED, **_COMPILED_FOR_MESSAGES} if is_message else _COMPILED
    for advice, pattern in patterns.items():
        # A note continues its code: "int64_t offset;  // of a view, in bytes".
        if is_note and advice == _START:
            continue
        for match in pattern.finditer(sentence):
            if match[0].lower() not in AMERICAN:
                found.append(f"{advice}: {match[0]!r}")
                break
    return found
