// Linked into every program of a build with AddressSanitizer. The leak check of GCC up to 13 and LLVM up to 16 takes
// some blocks of dynamic thread-local storage for blocks of a glibc before 2.25, by their address alone, reads a size
// where none is, and crashes at exit, rarely ("Tracer caught signal 11", github.com/google/sanitizers/issues/1322).
// Options in ASAN_OPTIONS come after these.
extern "C" const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}  // NOLINT(bugprone-reserved-identifier)

// Fontconfig, which cairo asks for fonts, keeps the patterns of its configuration until the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig\n";
}  // NOLINT(bugprone-reserved-identifier)
