// Entry point of the test programs that need no other.
#include "tests/support/session.h"

int main(int argc, char** argv) { return tandem::test::run_session(argc, argv); }
