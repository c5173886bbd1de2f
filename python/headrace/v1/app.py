"""tf.compat.v1.app: programs with flags."""

import sys

from headrace.v1 import flags


def run(main=None, argv=None):
    """Reads the flags, runs main(the rest of the command line) and ends the program."""
    values, argv = flags.FLAGS, sys.argv if argv is None else argv
    main = main or sys.modules["__main__"].main
    if any(a in ("--help", "-help", "--helpfull", "-h") for a in argv[1:]):
        print(f"\n       USAGE: {argv[0]} [flags]\nflags:\n\n{values.get_help()}")
        sys.exit(1)
    try:
        rest = values(argv, known_only=True)
    except flags.Error as error:
        sys.stderr.write(f"FATAL Flags parsing error: {error}\n")
        sys.stderr.write("Pass --helpshort or --helpfull to see help on flags.\n")
        sys.exit(1)
    sys.exit(main(rest))
