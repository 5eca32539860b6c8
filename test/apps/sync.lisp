;;; Threads that allocate, so that the collector stops them by signals wherever they are.
(defvar *count* 0)
(defvar *lock* (sb-thread:make-mutex))
(defvar *done* (sb-thread:make-semaphore))

(defun tree (depth)
  (if (zerop depth) nil (cons (tree (1- depth)) (tree (1- depth)))))

(defun work ()
  (dotimes (i 60)
    (tree 14)
    (dotimes (k 1000)
      (sb-thread:with-mutex (*lock*) (incf *count*)))
    (sb-thread:signal-semaphore *done*))
  7)

(let ((threads (loop repeat 4 collect (sb-thread:make-thread #'work))))
  (dotimes (i 240)
    (sb-thread:wait-on-semaphore *done*))
  (gc :full t)
  (print (list *count* (mapcar #'sb-thread:join-thread threads))))

(print (handler-case (sb-ext:with-timeout 0.1 (loop)) (sb-ext:timeout () :timeout)))

(let ((thread (sb-thread:make-thread (lambda () (sb-thread:wait-on-semaphore *done*)))))
  (sb-thread:terminate-thread thread)
  (print (sb-thread:join-thread thread :default :terminated)))

(labels ((deep (n) (1+ (deep (1+ n)))))
  (print (handler-case (deep 0) (storage-condition () :exhausted))))
