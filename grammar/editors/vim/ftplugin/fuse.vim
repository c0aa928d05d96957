" Vim settings for .fuse, the language of fusec: comments, indentation, `:make` by `fusec check`.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal comments=:# commentstring=#\ %s
setlocal expandtab shiftwidth=4 softtabstop=4
setlocal autoindent nosmartindent nocindent
setlocal suffixesadd=.fuse include=^\\s*import
setlocal makeprg=fusec\ check\ %:S errorformat=%f:%l:%c:\ %trror:\ %m,%f:%l:%c:\ %tarning:\ %m,%-G%.%#

let b:undo_ftplugin = "setlocal comments< commentstring< expandtab< shiftwidth< softtabstop< autoindent< smartindent< cindent<"
      \ . " suffixesadd< include< makeprg< errorformat<"
