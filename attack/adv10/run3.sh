R=/work/wt/g/build/tests/run/decoy/dune-run-unchecked
uname -r; chmod 666 /dev/dune; mount -t tmpfs none /mnt; cp /tmp/adv10/native /mnt/n; cd /mnt
timeout 80 $R -- /tmp/adv10/uring /mnt/n 400000 2>&1 | grep -v "int 0x80 faulted"; echo $?
dmesg | tail -3
