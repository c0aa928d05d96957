autocmd BufNewFile,BufRead *.fuse setfiletype fuse
