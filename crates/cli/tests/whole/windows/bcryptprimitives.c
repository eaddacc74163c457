/*
 * Rust's standard library takes its random numbers from ProcessPrng, which every Windows since 7 has and Debian's Wine
 * (8.0) has not. This library gives it what Wine does have. It lies beside the program in tests and is never shipped.
 */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG size); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
  const SIZE_T AT_ONCE = 1 << 20; /* fits into a ULONG */
  while (size > 0) {
    const SIZE_T now = size < AT_ONCE ? size : AT_ONCE;
    if (!SystemFunction036(bytes, (ULONG)now)) return FALSE;
    bytes += now;
    size -= now;
  }
  return TRUE;
}
