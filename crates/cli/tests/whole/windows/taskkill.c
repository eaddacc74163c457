/*
 * taskkill as it is on a busy machine: it takes its time, and then has Windows' own do the work. It lies beside the program in
 * tests, where programs are looked for first, writes down whom it was to end and whether it was still there, and is
 * never shipped.
 */
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

/* Longer than the quarter of a second that a hook has elsewhere whose time is up, shorter than what the agent waits. */
#define TAKES_MS 500
/* What Windows' own ends with where there is no such process. */
#define NOT_FOUND 128

int main(int count, char **words) {
  if (count < 2) return 1;
  Sleep(TAKES_MS);
  HANDLE leader = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)atoi(words[count - 1]));
  BOOL there = leader != NULL && WaitForSingleObject(leader, 0) == WAIT_TIMEOUT;
  FILE *calls = fopen("C:\\taskkill.log", "a");
  if (calls == NULL) return 1;
  fprintf(calls, "%s: %s\n", words[count - 1], there ? "there" : "gone");
  fclose(calls);
  if (!there) return NOT_FOUND;
  return (int)_spawnv(_P_WAIT, "C:\\windows\\system32\\taskkill.exe", (const char *const *)words);
}
