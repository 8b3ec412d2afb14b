/* io_uring's task work replaces dune-run's descriptor after the module has looked at it and before
 * the thread is in execveat(). A chain: POLL_ADD, CLOSE of the number, RECVMSG with SCM_RIGHTS or OPENAT. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <string.h>
#include <errno.h>
#include <time.h>
#include <sys/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/io_uring.h>
#define RAW (1<<16)
#define SELF 1008
static char*q; static struct io_uring_sqe*sq; static struct io_uring_params p; static int ring;
static void put(struct io_uring_sqe*e){
 unsigned*tail=(void*)(q+p.sq_off.tail),mask=*(unsigned*)(q+p.sq_off.ring_mask),*arr=(void*)(q+p.sq_off.array);
 sq[*tail&mask]=*e; arr[*tail&mask]=*tail&mask; __atomic_store_n(tail,*tail+1,__ATOMIC_RELEASE);}
int main(int c,char**v){
 setvbuf(stdout,0,_IONBF,0);
 volatile struct { volatile long go, delay; long stop; } *sh=mmap(0,4096,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);
 int pp[2]; pipe(pp); fcntl(pp[0],F_SETFL,O_NONBLOCK);
 pid_t k=fork();
 if(!k){ prctl(1,SIGKILL); long seen=0; while(!sh->stop){ long g=sh->go; if(g==seen) continue; seen=g;
   for(volatile long i=0;i<sh->delay;i++); write(pp[1],"x",1);} _exit(0);}
 p.flags= c>2?0:IORING_SETUP_COOP_TASKRUN;
 ring=syscall(SYS_io_uring_setup|RAW,16,&p); printf("ring %d %s\n",ring,ring<0?strerror(errno):""); if(ring<0)return 1;
 q=mmap(0,8192,3,MAP_SHARED|MAP_POPULATE,ring,IORING_OFF_SQ_RING); sq=mmap(0,4096,3,MAP_SHARED|MAP_POPULATE,ring,IORING_OFF_SQES);
 /* all numbers below SELF are used */
 struct rlimit l={1100,20000}; setrlimit(RLIMIT_NOFILE,&l);
 int nat=open(v[1],O_RDONLY|O_CLOEXEC);
 int saved=fcntl(SELF,F_DUPFD_CLOEXEC,0); 
 saved=syscall(SYS_fcntl|RAW,SELF,F_DUPFD_CLOEXEC,0); printf("saved own file as %d\n",saved);
 int z=open("/dev/null",O_RDONLY|O_CLOEXEC);
 while((z=syscall(SYS_dup|RAW,z))>=0 && z<SELF-1); printf("last dup %d %s\n",z,strerror(errno));
 /* arguments too long: execve fails in the kernel, and can be made again */
 int big=1500000; char*a=malloc(big); memset(a,'a',big-1); a[big-1]=0;
 char*fail[]={"x",0}, *env[]={"A=B",0}; 
 char path[100]; strcpy(path,v[1]);
 long M=atoi(v[2]),D=0; long hist[4][16]={0}; long R=400,eperm=0; long tries=0,early=0,late=0; int win=0;
 struct timespec t0,t1; clock_gettime(CLOCK_MONOTONIC,&t0);
 for(tries=0;tries<20000;tries++){
  clock_gettime(CLOCK_MONOTONIC,&t1); if(t1.tv_sec-t0.tv_sec>60) break;
  D=tries<3?2000000000L:rand()%M; sh->delay=D; pid_t d=fork(); 
  if(!d){
   /* a ring of this process */
   memset(&p,0,sizeof p); p.flags=IORING_SETUP_COOP_TASKRUN; close(ring);
   ring=syscall(SYS_io_uring_setup|RAW,16,&p);
   /* keep the lower numbers full */
   q=mmap(0,8192,3,MAP_SHARED|MAP_POPULATE,ring,IORING_OFF_SQ_RING); sq=mmap(0,4096,3,MAP_SHARED|MAP_POPULATE,ring,IORING_OFF_SQES);
   struct io_uring_sqe e;
   memset(&e,0,sizeof e); e.opcode=IORING_OP_POLL_ADD; e.fd=pp[0]; e.poll32_events=POLLIN; e.flags=IOSQE_IO_LINK; put(&e);
   memset(&e,0,sizeof e); e.opcode=IORING_OP_CLOSE; e.fd=SELF; e.flags=IOSQE_IO_LINK; put(&e);
   memset(&e,0,sizeof e); e.opcode=IORING_OP_OPENAT; e.fd=AT_FDCWD; e.addr=(unsigned long)path; e.open_flags=O_RDONLY; put(&e);
   long s=syscall(SYS_io_uring_enter|RAW,ring,3,0,0,0,0);
   if(tries<1) printf("ring %d submit %ld\n",ring,s);
   sh->go++;
   execve(v[1],fail,env); _exit(errno==EPERM?100:errno==EBADF?102:101);
  }
  int st; waitpid(d,&st,0); char b[64]; while(read(pp[0],b,64)>0);
  if(WIFEXITED(st)&&WEXITSTATUS(st)==0){ printf("try %ld: ran natively\n",tries); win=1; break;}
  int x=WIFEXITED(st)?WEXITSTATUS(st):-1; 
  if(tries<3){ printf("no wake: exit %d\n",x); if(tries==2){ kill(k,9); waitpid(k,0,0); k=fork(); if(!k){ long seen=sh->go; while(!sh->stop){ long g=sh->go; if(g==seen) continue; seen=g; for(volatile long i=0;i<sh->delay;i++); write(pp[1],"x",1);} _exit(0);} } continue; }
  hist[x==3?0:x==100?1:x==102?2:3][D*16/M]++;
 }
 printf("tries %ld early %ld late %ld win %d\n",tries,early,late,win);
 for(int i=0;i<16;i++) printf("delay %d/16: sandboxed %ld EPERM %ld EBADF %ld other %ld\n",i,hist[0][i],hist[1][i],hist[2][i],hist[3][i]); sh->stop=1; kill(k,9);
 return 0;}
