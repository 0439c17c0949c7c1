/* A libnvidia-ml.so.1 for tests: as much of NVML as the service asks through pynvml.
 *
 *   gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 *
 * Found through LD_LIBRARY_PATH. FAKE_NVML names a file with one line for each GPU, fields parted by |:
 *   model|bytes|bytes in use|capability, major|minor|busy %|memory busy %|mig (0, 1)|pid:bytes,pid:bytes
 * Without the file the driver is not loaded; a GPU with the model LOST has fallen off the bus; a mig of -
 * is a GPU that cannot be cut, one of 1:BYTES,BYTES is cut into instances of so much, 0 for an empty place.
 * pid:bytes@1 is a process on the instance at that place, pid:bytes! draws, bytes of ? are not told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, UNINITIALIZED, INVALID, NOT_SUPPORTED, NOT_FOUND = 6, TOO_SMALL, NO_DRIVER = 9, LOST = 15 };
enum { GPUS = 16, PLACES = 7 };

typedef unsigned long long Bytes;
typedef struct Gpu {
    unsigned index, busy, memory_busy;
    int major, minor;
    Bytes total, used;
    char model[96], uuid[80], mig[128], processes[512];
    struct Gpu *parent; /* of an instance, whose index is its place */
} Gpu;
typedef struct { Bytes total, free, used; } Memory;
typedef struct { unsigned version; Bytes total, reserved, free, used; } MemoryV2;
typedef struct { unsigned pid; Bytes used; unsigned instance, compute; } Process;

static Gpu gpus[GPUS], instances[GPUS][PLACES];
static unsigned count;
static int up;

#define NEED(gpu) do { if (!up) return UNINITIALIZED; if (!(gpu)) return INVALID; } while (0)
#define NEED_WHOLE(gpu) do { NEED_GPU(gpu); if ((gpu)->parent) return NOT_SUPPORTED; } while (0)
#define NEED_GPU(gpu) do { NEED(gpu); if (!strcmp((gpu)->model, "LOST")) return LOST; } while (0)

static void cut(Gpu *gpu) {
    char *text = strchr(gpu->mig, ':');
    memset(instances[gpu->index], 0, sizeof instances[gpu->index]);
    for (unsigned place = 0; text && place < PLACES; place++, text = strchr(text + 1, ',')) {
        Gpu *instance = &instances[gpu->index][place];
        *instance = *gpu;
        instance->parent = gpu, instance->index = place;
        instance->total = strtoull(text + 1, NULL, 10);
        snprintf(instance->model, sizeof instance->model, "%.80s MIG", gpu->model);
        snprintf(instance->uuid, sizeof instance->uuid, "MIG-fa4e0000-0000-4000-8000-%06u%06u", gpu->index, place);
    }
}

static int read_gpus(void) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024];
    if (!file) return NO_DRIVER;
    for (count = 0; count < GPUS && fgets(line, sizeof line, file);) {
        Gpu *gpu = &gpus[count];
        if (*line == '#' || *line == '\n') continue;
        memset(gpu, 0, sizeof *gpu);
        if (sscanf(line, "%95[^|]|%llu|%llu|%d|%d|%u|%u|%127[^|]|%511[^\n]", gpu->model, &gpu->total, &gpu->used,
                   &gpu->major, &gpu->minor, &gpu->busy, &gpu->memory_busy, gpu->mig, gpu->processes) < 8)
            continue;
        gpu->index = count;
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-fa4e0000-0000-4000-8000-%012u", count++);
        cut(gpu);
    }
    fclose(file);
    return OK;
}

static int put(char *buffer, unsigned length, const char *text) {
    if (strlen(text) + 1 > length) return TOO_SMALL;
    strcpy(buffer, text);
    return OK;
}

int nvmlInit_v2(void) { int result = read_gpus(); up = result == OK; return result; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { if (!up) return UNINITIALIZED; up = 0; return OK; }

const char *nvmlErrorString(int result) {
    return result == OK ? "Success" : result == NO_DRIVER ? "Driver Not Loaded" : "Another error";
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) { NEED(buffer); return put(buffer, length, "550.54.15"); }
int nvmlSystemGetNVMLVersion(char *buffer, unsigned length) { NEED(buffer); return put(buffer, length, "12.550.54.15"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { NEED(version); *version = 12040; return OK; }

int nvmlDeviceGetCount_v2(unsigned *number) { NEED(number); *number = count; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    NEED(gpu);
    if (index >= count) return INVALID;
    *gpu = &gpus[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **gpu) {
    NEED(gpu);
    for (unsigned index = 0; index < count; index++)
        if (!strcmp(uuid, gpus[index].uuid)) { *gpu = &gpus[index]; return OK; }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(Gpu *gpu, unsigned *index) { NEED_GPU(gpu); *index = gpu->index; return OK; }
int nvmlDeviceGetMinorNumber(Gpu *gpu, unsigned *number) { NEED_WHOLE(gpu); *number = gpu->index; return OK; }
int nvmlDeviceGetName(Gpu *gpu, char *buffer, unsigned length) { NEED_GPU(gpu); return put(buffer, length, gpu->model); }
int nvmlDeviceGetUUID(Gpu *gpu, char *buffer, unsigned length) { NEED_GPU(gpu); return put(buffer, length, gpu->uuid); }

int nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *memory) {
    NEED_GPU(gpu);
    *memory = (Memory){gpu->total, gpu->total - gpu->used, gpu->used};
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, MemoryV2 *memory) {
    NEED_GPU(gpu);
    *memory = (MemoryV2){memory->version, gpu->total, 0, gpu->total - gpu->used, gpu->used};
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(Gpu *gpu, int *major, int *minor) {
    NEED_WHOLE(gpu);
    *major = gpu->major, *minor = gpu->minor;
    return OK;
}

int nvmlDeviceGetUtilizationRates(Gpu *gpu, unsigned *rates) {
    NEED_WHOLE(gpu);
    rates[0] = gpu->busy, rates[1] = gpu->memory_busy;
    return OK;
}

int nvmlDeviceGetMigMode(Gpu *gpu, unsigned *now, unsigned *later) {
    NEED_WHOLE(gpu);
    if (*gpu->mig == '-') return NOT_SUPPORTED;
    *now = *gpu->mig == '1', *later = 0;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Gpu *gpu, unsigned *number) { NEED_WHOLE(gpu); *number = PLACES; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(Gpu *gpu, unsigned place, Gpu **instance) {
    NEED_WHOLE(gpu);
    if (place >= PLACES) return INVALID;
    if (!instances[gpu->index][place].total) return NOT_FOUND;
    *instance = &instances[gpu->index][place];
    return OK;
}

static int find_processes(Gpu *gpu, unsigned *number, Process *found, int drawing) {
    NEED_GPU(gpu);
    unsigned room = *number, seen = 0;
    char text[512], *rest;
    strcpy(text, gpu->processes);
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *place = strchr(one, '@');
        if (gpu->parent && (!place || strtoul(place + 1, NULL, 10) != gpu->index)) continue;
        if ((strchr(one, '!') != NULL) != drawing) continue;
        if (seen < room) {
            Process process = {0, 0, 0xFFFFFFFFu, 0xFFFFFFFFu};
            sscanf(one, "%u:%llu", &process.pid, &process.used);
            if (strchr(one, '?')) process.used = ~0ULL;
            found[seen] = process;
        }
        seen++;
    }
    *number = seen;
    return seen > room ? TOO_SMALL : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *number, Process *found) {
    return find_processes(gpu, number, found, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Gpu *gpu, unsigned *number, Process *found) {
    return find_processes(gpu, number, found, 1);
}
