/* Reads a file of an NFS server by libnfs, several times, with SLOTS calls of 1 MiB in flight: what nfs-cat would do if it
 * did not wait for each answer. Prints the bytes and the seconds of each pass. The payload stays where libnfs received it. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nfsc/libnfs.h>

static const uint64_t CALL_BYTES = 1 << 20;

struct pass {
    uint64_t answered_bytes;
    int in_flight;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "Error: %s: %s\n", what, why);
    exit(1);
}

static void answered(int bytes, struct nfs_context *nfs, void *data, void *private)
{
    struct pass *pass = private;
    (void)data;
    if (bytes < 0)
        fail("a READ", nfs_get_error(nfs));
    pass->answered_bytes += bytes;
    pass->in_flight--;
}

static void read_once(struct nfs_context *nfs, struct nfsfh *file, uint64_t file_bytes, int slots)
{
    struct pass pass = {0, 0};
    uint64_t asked = 0;
    while (asked < file_bytes || pass.in_flight > 0) {
        for (; asked < file_bytes && pass.in_flight < slots; pass.in_flight++) {
            uint64_t bytes = file_bytes - asked < CALL_BYTES ? file_bytes - asked : CALL_BYTES;
            if (nfs_pread_async(nfs, file, asked, bytes, answered, &pass) != 0)
                fail("a READ", nfs_get_error(nfs));
            asked += bytes;
        }
        struct pollfd socket = {.fd = nfs_get_fd(nfs), .events = nfs_which_events(nfs)};
        if (poll(&socket, 1, -1) < 0 || nfs_service(nfs, socket.revents) < 0)
            fail("the connection", nfs_get_error(nfs));
    }
    if (pass.answered_bytes != file_bytes)
        fail("the answers", "they are shorter than the file");
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    if (count != 4)
        fail("usage", "libnfs_reads URL SLOTS PASSES");
    struct nfs_context *nfs = nfs_init_context();
    struct nfs_url *url = nfs_parse_url_full(nfs, arguments[1]);
    struct nfsfh *file;
    struct nfs_stat_64 about;
    if (!url || nfs_mount(nfs, url->server, url->path) || nfs_open(nfs, url->file, 0, &file)
        || nfs_fstat64(nfs, file, &about))
        fail(arguments[1], nfs_get_error(nfs));
    for (int left = atoi(arguments[3]); left > 0; left--) {
        double began_s = now_s();
        read_once(nfs, file, about.nfs_size, atoi(arguments[2]));
        printf("%" PRIu64 " %f\n", about.nfs_size, now_s() - began_s);
    }
    nfs_destroy_context(nfs);
    return 0;
}
