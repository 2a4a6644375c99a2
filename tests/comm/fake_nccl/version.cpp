// A library that has of NCCL at most the function that tells the version.
#if FAKE_NCCL_VERSION > 0
extern "C" int ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
#else
extern "C" int something_else() { return 0; }
#endif
