// What a user of the shared library may see. Everything else is hidden, so that hlojit lives beside
// other copies of what it is made of in one process.
#pragma once

#if defined(__GNUC__)
#define HLOJIT_API __attribute__((visibility("default")))
#else
#define HLOJIT_API
#endif
