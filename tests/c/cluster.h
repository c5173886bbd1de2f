// What C programs share that make clusters: ServerDefs, and tasks of them.
#ifndef HEADRACE_TESTS_C_CLUSTER_H_
#define HEADRACE_TESTS_C_CLUSTER_H_

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

// --- ServerDefs, of which C has no messages.

typedef struct {
  char bytes[512];
  size_t length;
} Proto;

static inline void Varint(Proto* p, int field, int value) {
  CHECK(value < 128);
  p->bytes[p->length++] = (char)(field << 3);
  p->bytes[p->length++] = (char)value;
}

static inline void Bytes(Proto* p, int field, const char* data, size_t length) {
  CHECK(length < 128 && p->length + length + 2 < sizeof p->bytes);
  p->bytes[p->length++] = (char)(field << 3 | 2);
  p->bytes[p->length++] = (char)length;
  memcpy(p->bytes + p->length, data, length);
  p->length += length;
}

static inline void Text(Proto* p, int field, const char* text) {
  Bytes(p, field, text, strlen(text));
}

// Task `index` of the job "local", whose tasks are at these addresses; those of
// null are left out.
static inline Proto ServerDef(const char* const* addresses, int tasks,
                              int index, const char* job,
                              const char* protocol) {
  Proto jobs = {"", 0}, cluster = {"", 0}, def = {"", 0};
  Text(&jobs, 1, "local");
  for (int i = 0; i < tasks; ++i) {
    if (addresses[i] == NULL) continue;
    Proto task = {"", 0};
    Varint(&task, 1, i);
    Text(&task, 2, addresses[i]);
    Bytes(&jobs, 2, task.bytes, task.length);
  }
  Bytes(&cluster, 1, jobs.bytes, jobs.length);
  Bytes(&def, 1, cluster.bytes, cluster.length);
  Text(&def, 2, job);
  Varint(&def, 3, index);
  if (protocol) Text(&def, 5, protocol);
  return def;
}

static const char* const kAnyPort = "localhost:0";

static inline TF_Server* Started(Proto def, TF_Status* s) {
  TF_Server* server = TF_NewServer(def.bytes, def.length, s);
  CHECK_OK(s);
  TF_ServerStart(server, s);
  CHECK_OK(s);
  return server;
}

static inline int FreePort(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  CHECK(bind(fd, (struct sockaddr*)&at, length) == 0);
  CHECK(getsockname(fd, (struct sockaddr*)&at, &length) == 0);
  close(fd);
  return ntohs(at.sin_port);
}

#endif  // HEADRACE_TESTS_C_CLUSTER_H_
