/* a sandboxed process writes the memory of another sandboxed process that executes a program,
 * while dune-run's native start runs there */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <string.h>
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define RAW (1<<16)
int main(int c,char**v){
 /* write(1,msg) by INT 0x80-free native code: dune-run's text is filled with a sled */
 static unsigned char sled[4096*4]; 
 unsigned long at=strtoul(v[2],0,16); unsigned long len=strtoul(v[3],0,16);
 static const unsigned char code[]={
  0xb8,20,0,0,0,0xcd,0x80,            /* eax=20; int 0x80 : getpid of the i386 ABI */
  0x89,0xc3,                          /* mov %eax,%ebx */
  0x81,0xe3,0x7f,0,0,0,               /* and $0x7f,%ebx */
  0xbb,77,0,0,0,                      /* ebx=77 */
  0xb8,1,0,0,0,0xcd,0x80 };           /* i386 exit(77) */
 memset(sled,0x90,sizeof sled);
 if(len>sizeof sled) len=sizeof sled;
 memcpy(sled+len-sizeof code-64,code,sizeof code);
 setvbuf(stdout,0,_IONBF,0);
 for(int t=0;t<40;t++){
  pid_t k=fork();
  if(!k){ char*a[]={"true",0}; execv(v[1],a); _exit(2);}
  char n[40]; int st, w=0, o=0; sprintf(n,"/proc/%d/mem",k);
  while(!waitpid(k,&st,WNOHANG)){
   int fd=syscall(SYS_open|RAW,n,O_RDWR); if(fd<0) {o=errno;continue;}
   if(syscall(SYS_pwrite64|RAW,fd,sled,len,at)==(long)len) w++;
   close(fd);
  }
  printf("try %d: %d writes, open errno %d, status %x%s\n",t,w,o,st,
    WIFEXITED(st)&&WEXITSTATUS(st)==77?"  <- NATIVE CODE (INT 0x80 exit(77)) RAN":"");
  if(WIFEXITED(st)&&WEXITSTATUS(st)==77) break;
 }
 return 0;}
