cd /tmp/adv10; R=/work/wt/g/build/tests/run/decoy/dune-run-unchecked
uname -r; ls -l /dev/dune; id -u
echo == native direct; ./native
echo == sandboxed; $R -- /tmp/adv10/native; echo $?
echo == addfd; $R -- /tmp/adv10/addfd /tmp/adv10/native; echo status $?
echo == mem; timeout 120 $R -- /tmp/adv10/mem /bin/true 6d7500101000 1280
echo == mem checked; timeout 20 /work/wt/g/build/libexec/dune-run -- /tmp/adv10/addfd /tmp/adv10/native x
dmesg | tail -5
