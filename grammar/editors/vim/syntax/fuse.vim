" Vim syntax of .fuse, the language of fusec.
" Made by docs/generate: edit editors.py there, not this file.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax iskeyword @,48-57,_

" Of two items that match at the same place Vim takes the last.
syntax match fuseOperator /\%(!=\|&&\|\*\*\|->\|<=\|==\|>=\|||\|!\|\*\|+\|-\|\/\|<\|=\|>\)/
syntax match fuseDefinition /\<\h\w*\>\ze\_s*==\@!/
syntax match fuseCall /\<\h\w*\>\ze\s*[[(]/
syntax match fuseLibrary /\<\%(softmax\|log_softmax\|logsumexp\|layer_norm\|rms_norm\|l2_normalize\|silu\|gelu\|gelu_tanh\|relu\)\>\ze\s*[[(]/
syntax match fuseFunction /\<\%(abs\|sqrt\|rsqrt\|exp\|exp2\|log\|log2\|log1p\|expm1\|sin\|cos\|tanh\|sigmoid\|erf\|floor\|ceil\|round\|sign\|isnan\|min\|max\|clamp\|where\|index\|size\|pow\)\>\ze\s*(/
syntax match fuseReduction /\<\%(sum\|mean\|max\|min\|prod\|var\)\>\ze\s*\[/
syntax match fuseType /\%(:\s*\)\@<=\%(f64\|f32\|f16\|bf16\|f8e4m3\|f8e5m2\|i64\|i32\|i8\|u8\|bool\)\>/
syntax match fuseType /\<\%(f64\|f32\|f16\|bf16\|f8e4m3\|f8e5m2\|i64\|i32\|i8\|u8\|bool\)\>\ze\s*(/
syntax match fuseNumber /\<\d\+\%(\.\d*\)\=\%([eE][+-]\=\d\+\)\=/
syntax match fuseNumber /\.\d\+\%([eE][+-]\=\d\+\)\=/
syntax match fuseName /\h\w*/ contained
syntax match fuseAxis /\<\h\w*\>/ contained
syntax region fuseAxes start=/\[/ end=/\]/ contains=fuseAxis,fuseNumber,fuseOperator,fuseComment
syntax keyword fuseDeclare fn graph nextgroup=fuseName skipwhite
syntax keyword fuseControl import return
syntax keyword fuseConstant inf true false
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
