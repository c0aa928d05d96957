"""The syntax files of grammar/editors/."""
import json
import re

import lists

NAME = r"[A-Za-z_][A-Za-z_0-9]*"
NUMBER = r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?"


def any_of(texts):
    return "(?:" + "|".join(re.escape(t).replace("/", "\\/") for t in texts) + ")"


def kinds():
    """The reserved words by what they are: ones that begin a declaration, constants, the others."""
    words = lists.words()
    constants = [w for w, kind in words.items() if kind == "CONSTANT"]
    declare = [w for w, kind in words.items() if kind in ("FN", "GRAPH")]
    return declare, constants, [w for w in words if w not in declare + constants]


def textmate():
    declare, constants, control = kinds()
    dtypes = any_of(d.text for d in lists.dtypes())

    def match(scope, pattern, **captures):
        rule = {"name": scope, "match": pattern} if scope else {"match": pattern}
        if captures:
            rule["captures"] = {number[1:]: {"name": name} for number, name in captures.items()}
        return rule

    axes = {"begin": r"\[", "end": r"\]", "captures": {"0": {"name": "punctuation.section.brackets.fuse"}},
            "patterns": [{"include": "#comment"}, {"include": "#number"}, {"include": "#operator"},
                         match("punctuation.separator.fuse", ","), match("variable.parameter.axis.fuse", NAME)]}
    repository = {
        "comment": match("comment.line.number-sign.fuse", r"#.*$"),
        "string": match("string.quoted.double.fuse", r'"[^"\n]*"?'),
        "number": match("constant.numeric.fuse", rf"(?<![A-Za-z_0-9]){NUMBER}(?![A-Za-z_0-9])"),
        "declaration": match("", rf"\b{any_of(declare)}\b(?:\s+({NAME}))?", c0="storage.type.fuse",
                             c1="entity.name.function.fuse"),
        "control": match("keyword.control.fuse", rf"\b{any_of(control)}\b"),
        "constant": match("constant.language.fuse", rf"\b{any_of(constants)}\b"),
        "dtype": match("", rf"(:)\s*({dtypes})\b|\b({dtypes})(?=\s*\()", c1="punctuation.separator.fuse",
                       c2="support.type.fuse", c3="support.type.fuse"),
        "axis": match("", rf"\b(index|size)\s*(\()\s*({NAME})", c1="support.function.builtin.fuse",
                      c2="punctuation.section.parens.fuse", c3="variable.parameter.axis.fuse"),
        "reduction": match("support.function.reduction.fuse",
                           rf"\b{any_of(r.text for r in lists.reductions())}(?=\s*\[)"),
        "function": match("support.function.builtin.fuse", rf"\b{any_of(lists.functions())}(?=\s*\()"),
        "library": match("support.function.std.fuse", rf"\b{any_of(lists.library())}(?=\s*[\[(])"),
        "call": match("entity.name.function.call.fuse", rf"\b{NAME}(?=\s*[\[(])"),
        "binding": match("variable.other.definition.fuse", rf"\b{NAME}(?=\s*=(?!=))"),
        "name": match("variable.other.fuse", rf"\b{NAME}"),
        "operator": match("keyword.operator.fuse", any_of(lists.operators())),
        "punctuation": match("punctuation.separator.fuse", "[,:]"),
        "bracket": match("punctuation.section.fuse", r"[(){}]"),
        "axes": axes,
    }
    order = ["comment", "string", "number", "declaration", "control", "constant", "dtype", "axis", "reduction", "function",
             "library", "call", "binding", "name", "axes", "operator", "punctuation", "bracket"]
    grammar = {
        "comment": "Made by docs/generate: edit editors.py there, not this file.",
        "name": "Fuse", "scopeName": "source.fuse", "fileTypes": ["fuse"],
        "patterns": [{"include": f"#{name}"} for name in order], "repository": repository}
    return json.dumps(grammar, indent=2) + "\n"


def vim():
    declare, constants, control = kinds()

    def names(words):
        return r"\%(" + r"\|".join(words) + r"\)"

    dtypes = names(d.text for d in lists.dtypes())
    signs = r"\%(" + r"\|".join(re.sub(r"([*/\[\]~.$^])", r"\\\1", s) for s in lists.operators()) + r"\)"
    return rf'''" Vim syntax of .fuse, the language of fusec.
" Made by docs/generate: edit editors.py there, not this file.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax iskeyword @,48-57,_

" Of two items that match at the same place Vim takes the last.
syntax match fuseOperator /{signs}/
syntax match fuseDefinition /\<\h\w*\>\ze\_s*==\@!/
syntax match fuseCall /\<\h\w*\>\ze\s*[[(]/
syntax match fuseLibrary /\<{names(lists.library())}\>\ze\s*[[(]/
syntax match fuseFunction /\<{names(lists.functions())}\>\ze\s*(/
syntax match fuseReduction /\<{names(r.text for r in lists.reductions())}\>\ze\s*\[/
syntax match fuseType /\%(:\s*\)\@<={dtypes}\>/
syntax match fuseType /\<{dtypes}\>\ze\s*(/
syntax match fuseNumber /\<\d\+\%(\.\d*\)\=\%([eE][+-]\=\d\+\)\=/
syntax match fuseNumber /\.\d\+\%([eE][+-]\=\d\+\)\=/
syntax match fuseName /\h\w*/ contained
syntax match fuseAxis /\<\h\w*\>/ contained
syntax region fuseAxes start=/\[/ end=/\]/ contains=fuseAxis,fuseNumber,fuseOperator,fuseComment
syntax keyword fuseDeclare {" ".join(declare)} nextgroup=fuseName skipwhite
syntax keyword fuseControl {" ".join(control)}
syntax keyword fuseConstant {" ".join(constants)}
syntax region fuseString start=/"/ end=/"/ oneline
syntax keyword fuseTodo TODO FIXME XXX contained
syntax match fuseComment /#.*/ contains=fuseTodo,@Spell

highlight default link fuseOperator Operator
highlight default link fuseDefinition Identifier
highlight default link fuseCall Function
highlight default link fuseLibrary Function
highlight default link fuseFunction Function
highlight default link fuseReduction Special
highlight default link fuseType Type
highlight default link fuseNumber Number
highlight default link fuseName Function
highlight default link fuseAxis Label
highlight default link fuseDeclare Keyword
highlight default link fuseControl Statement
highlight default link fuseConstant Constant
highlight default link fuseString String
highlight default link fuseTodo Todo
highlight default link fuseComment Comment

let b:current_syntax = "fuse"
'''
