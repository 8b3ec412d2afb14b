#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <string.h>
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#define RAW (1<<16)
int main(int c,char**v){
 struct sock_filter f[]={
  BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,nr)),
  BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,SYS_execveat,0,1),
  BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_USER_NOTIF),
  BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW)};
 struct sock_fprog p={4,f};
 int raw = c>2 ? 0 : RAW;
 setvbuf(stdout,0,_IONBF,0);
 prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0);
 int l=syscall(SYS_seccomp|raw,SECCOMP_SET_MODE_FILTER,SECCOMP_FILTER_FLAG_NEW_LISTENER,&p);
 printf("listener %d %s\n",l,l<0?strerror(errno):"");
 if(l<0) return 1;
 pid_t k=fork();
 if(!k){
  struct seccomp_notif n; struct seccomp_notif_resp r;
  int nat=open(v[1],O_RDONLY|O_CLOEXEC);
  memset(&n,0,sizeof n);
  if(syscall(SYS_ioctl|raw,l,SECCOMP_IOCTL_NOTIF_RECV,&n)) {perror("recv");_exit(1);}
  printf("execveat(%llu, %llx, flags %llx) at ip %llx\n",n.data.args[0],n.data.args[1],n.data.args[4],n.data.instruction_pointer);
  struct seccomp_notif_addfd a={.id=n.id,.flags=SECCOMP_ADDFD_FLAG_SETFD,.srcfd=nat,.newfd=n.data.args[0]};
  long e=syscall(SYS_ioctl|raw,l,SECCOMP_IOCTL_NOTIF_ADDFD,&a);
  printf("addfd %ld %s\n",e,e<0?strerror(errno):"");
  memset(&r,0,sizeof r); r.id=n.id; r.flags=SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  e=syscall(SYS_ioctl|raw,l,SECCOMP_IOCTL_NOTIF_SEND,&r);
  printf("send %ld\n",e);
  _exit(0);
 }
 usleep(200000);
 char*a[]={"x",0}; execv(v[1],a); perror("execv"); return 2;
}
