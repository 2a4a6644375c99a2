// A library that has at most one function, which tells a version.
#ifdef FAKE_VERSION
extern "C" int fake_version() { return FAKE_VERSION; }
#else
extern "C" int something_else() { return 0; }
#endif
