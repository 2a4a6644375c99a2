// A library that has of NCCL only the function that tells the version.
extern "C" int ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
