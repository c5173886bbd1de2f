#include "command/entry.h"

int main(int argc, char** argv) { return headrace::command::Main(argc, argv); }
