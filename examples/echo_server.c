/* SPDX-License-Identifier: MIT */
/* echo_server: sockets without a thread for each: what a client sends, it gets back.
 *
 *     cc echo_server.c $(pkg-config --cflags --libs errand) && ./a.out 7000
 *
 * Port 0 is a free one, which the first line names.  The reactor has no thread of its own
 * either: this one carries everything in its drains and parks.  SIGINT or SIGTERM stops it:
 * nobody is accepted any more, what was received is still sent, for two seconds at most. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <errand.h>
#include <errand/io.h>
#include <errand/net.h>
#include <errand/source.h>
#include <errand/waits.h>

#define STOP_LIMIT 2000000000u
#define PIECE      65536u
#define PAUSE      100000000u

typedef struct connection {
    struct connection *next, *before;
    errand_stream *stream;
    bool sending;
} connection;

/* An operation's wait says whose news it is: a member's address (out: of a pause), or a connection's. */
typedef struct server {
    errand_lease *lease;
    errand_listener *listener;
    errand_source *accepts, *signals;
    connection connections; /* the ring's head */
    size_t out;             /* operations that are owed a completion */
    uint64_t stop_ns;       /* until when; 0 = it was not asked to stop */
    unsigned long clients;
} server;

static void
must(errand_status status)
{
    if (status != ERRAND_OK) {
        fprintf(stderr, "%s\n", errand_status_text(status));
        exit(1);
    }
}

/* Submits what a constructor filled in; wait comes back with the completion. */
static void
start(server *self, errand_status filled, errand_spec *spec, void *wait)
{
    must(filled);
    must(errand_start(self->lease, spec, wait, NULL));
    self->out++;
}

/* ---- one client ---------------------------------------------------------------------------- */

static void
end(connection *client)
{
    client->before->next = client->next;
    client->next->before = client->before;
    errand_stream_abandon(&client->stream);
    free(client);
}

static void
receive(server *self, connection *client)
{
    errand_spec spec;
    client->sending = false;
    if (self->stop_ns == 0)
        start(self, errand_spec_receive_some(&spec, client->stream, PIECE), &spec,
              client);
    else
        end(client);
}

/* A receive or a send of this client has ended. */
static void
go_on(server *self, connection *client, errand_completion *completion)
{
    void *data;
    errand_spec spec;
    if (completion->outcome != ERRAND_COMPLETED) {
        end(client); /* the peer is gone, or the server stops */
    } else if (client->sending) {
        receive(self, client);
    } else {
        must(errand_completion_read(completion, &errand_file_bytes_type, &data, NULL));
        const errand_file_bytes *piece = data;
        client->sending = piece->size > 0;
        if (client->sending) /* the bytes are copied */
            start(self,
                  errand_spec_send(&spec, client->stream, piece->bytes, piece->size),
                  &spec, client);
        else
            end(client); /* no bytes: it has nothing more to say */
    }
}

/* ---- all of them --------------------------------------------------------------------------- */

static void
stop(server *self)
{
    self->stop_ns = errand_deadline_in(STOP_LIMIT);
    errand_source_close(self->accepts);
    errand_source_close(self->signals);
    errand_listener_close(self->listener);
    for (connection *c = self->connections.next; c != &self->connections; c = c->next)
        if (!c->sending)
            errand_stream_close(c->stream); /* its receive ends, and with it the client */
}

static void
next_item(server *self, errand_source **source)
{
    errand_spec spec;
    if (self->stop_ns == 0)
        start(self, errand_source_next(*source, &spec), &spec, source);
}

static void
listening(server *self, errand_completion *completion)
{
    char text[ERRAND_ENDPOINT_TEXT];
    if (completion->outcome != ERRAND_COMPLETED) {
        fprintf(stderr, "%s\n", completion->message);
        exit(1);
    }
    self->listener = errand_completion_take(completion).data;
    errand_endpoint at = errand_listener_local(self->listener);
    errand_endpoint_print(&at, text, sizeof text);
    printf("listening on %s\n", text);
    fflush(stdout);
    must(errand_source_accept(self->listener, NULL, &self->accepts));
    next_item(self, &self->accepts);
}

static void
accepted(server *self, errand_completion *completion)
{
    connection *client, *head = &self->connections;
    if (completion->outcome != ERRAND_COMPLETED && self->stop_ns == 0) {
        errand_spec spec; /* no descriptor is left, maybe: that does not change at once */
        fprintf(stderr, "%s\n", completion->message);
        start(self, errand_spec_timer(&spec, PAUSE), &spec, &self->out);
        return;
    }
    if (completion->outcome == ERRAND_COMPLETED &&
        (client = calloc(1, sizeof *client)) != NULL) {
        errand_stream *stream = errand_completion_take(completion).data;
        *client = (connection){head, head->before, stream, false};
        head->before = head->before->next = client;
        self->clients++;
        receive(self, client);
    }
    next_item(self, &self->accepts);
}

static void
on_completion(void *arg, errand_completion *completion)
{
    server *self = arg;
    self->out--;
    if (completion->wait == &self->listener)
        listening(self, completion);
    else if (completion->wait == &self->accepts)
        accepted(self, completion);
    else if (completion->wait == &self->out)
        next_item(self, &self->accepts);
    else if (completion->wait != &self->signals)
        go_on(self, completion->wait, completion);
    else if (self->stop_ns == 0)
        stop(self);
}

int
main(int argc, char **argv)
{
    static const int32_t numbers[] = {SIGINT, SIGTERM};
    server self = {.connections = {&self.connections, &self.connections, NULL, false}};
    errand_runtime *runtime;
    errand_executor *reactor;
    errand_endpoint at;
    errand_spec spec;
    size_t count;
    char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%s", argc > 1 ? argv[1] : "7000");
    must(errand_endpoint_parse(text, &at));
    must(errand_runtime_create(NULL, &runtime));
    must(errand_reactor_create(NULL, &reactor));
    must(errand_attach(runtime, reactor, 0, &self.lease));
    must(errand_source_signals(numbers, 2, NULL, &self.signals));
    next_item(&self, &self.signals);
    start(&self, errand_spec_listen(&spec, &at, NULL), &spec, &self.listener);
    while (self.out > 0) {
        must(errand_drain(runtime, 64, on_completion, &self, &count));
        if (self.stop_ns != 0 && errand_deadline_in(0) >= self.stop_ns)
            break;
        if (count == 0)
            must(errand_park(runtime, self.stop_ns != 0 ? self.stop_ns : UINT64_MAX));
    }
    printf("%lu clients\n", self.clients);
    errand_source_abandon(&self.accepts);
    errand_source_abandon(&self.signals);
    errand_listener_abandon(&self.listener);
    must(errand_runtime_shutdown(&runtime, errand_deadline_in(STOP_LIMIT),
                                 ERRAND_SHUTDOWN_QUIET, NULL));
    while (self.connections.next != &self.connections)
        end(self.connections.next);
    errand_executor_abandon(&reactor);
    return 0;
}
