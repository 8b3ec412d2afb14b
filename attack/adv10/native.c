/* shows whether it runs natively: the INT 0x80 is a SIGSEGV in the sandbox, and works natively */
#include <stdio.h>
#include <unistd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static void segv(int s){ static const char m[]="native.c: int 0x80 faulted: in the sandbox\n"; write(1,m,sizeof m-1); _exit(3);}
int main(int c,char**v){
 char b[400]; long n; int r;
 signal(SIGSEGV,segv);
 n=readlink("/proc/self/exe",b,sizeof b-1); b[n>0?n:0]=0;
 asm volatile("int $0x80":"=a"(r):"0"(20):"memory"); /* getpid */
 printf("NATIVE: pid %d, int 0x80 getpid gives %d, exe %s\n",getpid(),r,b);
 fflush(stdout);
 system("/bin/sh -c 'grep -c . /proc/self/maps; cat /proc/self/maps | grep -c stub'");
 return 0;}
