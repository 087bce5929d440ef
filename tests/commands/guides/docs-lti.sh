. "$PROJECT/tests/commands/guides/receiver.sh"
# The launch of the guide has to reach the tool.
sh() { command sh "$@" | tee launch.out && grep -q '^from north-east: biology$' launch.out; }
