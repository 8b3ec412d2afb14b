cd /tmp/adv10; R=/work/wt/g/build/tests/run/decoy/dune-run-unchecked
uname -r; chmod 666 /dev/dune
timeout 60 $R -- /tmp/adv10/dontfork; echo $?
dmesg | tail -5
