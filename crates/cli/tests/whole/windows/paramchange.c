/*
 * What 'sc control SERVICE paramchange' does on Windows, for a Wine whose sc cannot: tells a service that its settings have
 * changed. Its exit code is the error that Windows answers with, or 0.
 */
#include <windows.h>

int main(int count, char **words) {
  SC_HANDLE manager = OpenSCManagerA(NULL, NULL, SC_MANAGER_CONNECT);
  SC_HANDLE service = count == 2 ? OpenServiceA(manager, words[1], SERVICE_PAUSE_CONTINUE) : NULL;
  SERVICE_STATUS status;
  return service && ControlService(service, SERVICE_CONTROL_PARAMCHANGE, &status) ? 0 : (int)GetLastError();
}
