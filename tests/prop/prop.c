#include "check.h"
#include "generate.h"
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v){ (void)c; uint64_t first=strtoull(v[1],0,10), n=strtoull(v[2],0,10); int bad=0; 
 for(uint64_t i=first;i<first+n;i++){Arena*a=arena_new(); Sketch*s=generate(a,i,2048);
  Case k={.seed=i,.name="g",.text=print_sketch(a,s,"g",0),.same={print_sketch(a,s,"g",PRINT_PARENTHESES),print_sketch(a,s,"g",PRINT_INLINE)}};
  Checked x; Finding f={0}; if(!check_front(&k,&x,&f)){bad++; printf("=== seed %llu [%s]\n%s\n",(unsigned long long)i,f.kind,f.text); if(v[3])puts(k.text);} close_checked(&x); arena_free(a);} printf("%d bad\n",bad);}
