#include "c/devices.h"

#include <random>

#include "c/session.h"
#include "c/status.h"
#include "op/processor.h"

namespace headrace::capi {
namespace {

// What upstream says of every processor.
constexpr int64_t kMemoryOfProcessor = int64_t{256} << 20;  // bytes

Status CheckDevice(const TF_DeviceList* list, int index) {
  HR_RETURN_IF_ERROR(NotNull(list, "list"));
  if (index >= 0 && index < static_cast<int>(list->devices.size())) {
    return OkStatus();
  }
  return InvalidArgument("index out of bounds");
}

// What `tell` says of the device, or `otherwise` and an error.
template <typename T, typename F>
T OfDevice(const TF_DeviceList* list, int index, TF_Status* status, T otherwise,
           F&& tell) {
  return Into(status, [&] { return CheckDevice(list, index); }) ? tell()
                                                                : otherwise;
}

}  // namespace

TF_DeviceList* ListProcessors(int count) {
  auto list = std::make_unique<TF_DeviceList>();
  // Devices come to be with the process: which one it is tells them apart.
  static const uint64_t process = uint64_t{std::random_device()()} << 32 | 1;
  for (int i = 0; i < count; ++i) {
    list->devices.push_back(
        {ProcessorName(i), "CPU", kMemoryOfProcessor, process + i});
  }
  return list.release();
}

}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TF_DeviceList*> {
    HR_RETURN_IF_ERROR(capi::NotNull(session, "session"));
    if (session->cluster) {
      const headrace::StopScope closing(&session->closing);
      return session->cluster->ListDevices();
    }
    return capi::ListProcessors(session->config.processors);
  });
}

void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }

int TF_DeviceListCount(const TF_DeviceList* list) {
  return list ? static_cast<int>(list->devices.size()) : 0;
}

const char* TF_DeviceListName(const TF_DeviceList* list, int index,
                              TF_Status* status) {
  return capi::OfDevice<const char*>(list, index, status, nullptr, [&] {
    return list->devices[index].name.c_str();
  });
}

const char* TF_DeviceListType(const TF_DeviceList* list, int index,
                              TF_Status* status) {
  return capi::OfDevice<const char*>(list, index, status, nullptr, [&] {
    return list->devices[index].type.c_str();
  });
}

int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index,
                                 TF_Status* status) {
  return capi::OfDevice<int64_t>(list, index, status, -1,
                                 [&] { return list->devices[index].memory; });
}

uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index,
                                  TF_Status* status) {
  return capi::OfDevice<uint64_t>(
      list, index, status, 0, [&] { return list->devices[index].incarnation; });
}
