/* See v1_events.h. */
#include "v1_events.h"

bool gt_v1_event_next(struct gt_reader *r, struct gt_source *s, struct gt_v1_entry *event)
{
    struct gt_v1_record *record = &event->record;
    if (s->has_ahead) {
        *event = s->ahead;
        s->has_ahead = false;
        return true;
    }
    do {
        while (!gt_v1_record_next(&s->bytes, r->trace->format, record)) {
            if (!gt_source_next_piece(r->trace, s))
                return false;
        }
    } while (gt_v1_is_table(record->type));
    s->seq += gt_v1_global_order(r->trace->format) ? gt_get_varint(&record->args) : 0;
    s->ts += gt_get_varint(&record->args);
    r->end = s->ts > r->end ? s->ts : r->end;
    r->trace->kinds[record->type]++;
    r->trace->events++;
    r->trace->event_bytes += record->size;
    event->ts = s->ts;
    event->seq = s->seq;
    return true;
}

const struct gt_v1_entry *gt_v1_event_peek(struct gt_reader *r, struct gt_source *s)
{
    struct gt_v1_entry event;
    if (!s->has_ahead && gt_v1_event_next(r, s, &event)) {
        s->ahead = event;
        s->has_ahead = true;
    }
    return s->has_ahead ? &s->ahead : NULL;
}
