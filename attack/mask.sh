A=/work/wt/advs
echo native; $A/attack/maskptr; echo "status $?"
echo sandbox; $A/build/libexec/dune-run -- $A/attack/maskptr; echo "status $?"
