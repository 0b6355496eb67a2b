// hlojit_pjrt.so: the name that frontends look up in a PJRT plugin. All of it is in libhlojit.so.
extern "C" const void* hlojit_pjrt_api();
extern "C" __attribute__((visibility("default"))) const void* GetPjrtApi() { return hlojit_pjrt_api(); }
